"""What the engine costs, measured: `python -m tests.benchmarks.ingest`, `.retrieve`, `.compare`, `.imports`.

The engine and its handlers run in this process, as in a function. DynamoDB is ministack in a process of its own,
over loopback HTTP:

- in a process of its own, its work does not hold this process's interpreter, so that eight clients wait for it as they
  would wait for the service; and the time spent in it can be told from the time spent here, at the one place where a
  request leaves and its answer arrives. (With several clients that time includes the wait for the interpreter after
  the answer has come.)
- moto, in this process or in its own, copies its whole table for every transaction: with 10,000 chunks in it, a begin
  takes seconds, and a benchmark of ingest would measure moto.
"""
