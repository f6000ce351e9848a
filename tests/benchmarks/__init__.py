"""What the engine costs, measured: `python -m tests.benchmarks.ingest`, `.retrieve`, `.imports`.

The engine and its handlers run in this process, as in a function. DynamoDB is moto's server in a process of its
own, over loopback HTTP, for two reasons: its work does not hold this process's interpreter, so that eight clients
wait for it as they would wait for the service; and the time spent in it can be told from the time spent here, at
the one place where a request leaves and its answer arrives.
"""
