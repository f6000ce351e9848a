"""The vector store in OpenSearch: a domain, or a NextGen collection of OpenSearch Serverless.

``store`` keeps the protocol. ``index`` names, makes and proves an index, ``query`` builds and guards what is asked,
``writes`` what is written, and ``client`` alone sends.
"""
