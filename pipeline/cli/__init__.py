"""The command line of the pipeline: `barnabas pipeline COMMAND`.

A command is a module `command` with two functions, and a line in `commands.COMMANDS`:

    def add_arguments(parser: ArgumentParser) -> None:
        add_common_arguments(parser, resume="The same command goes on where this one stopped.")
        add_spark_arguments(parser)               # --master, --conf, --log-file
        add_server_arguments(parser)              # --servers, --option, --options-file
        parser.add_argument("--topic", ...)

    def run(options: Namespace) -> int:           # the exit code
        console = Console.of(options)
        check_connectivity(servers, topics)          # before Spark starts, which takes seconds
        with open_session(options, "ingest") as spark, console.progress("Reading", total=n) as progress:
            with task_progress(spark, console, "Compacting"):   # a bar of Spark's own tasks, for one long job
                ...
            progress.advance(1000)
        console.result({"records": n}, [f"Read {n:,} records"])
        return 0

Such a module does not load PySpark, PyArrow or the client at its top, because `--help` needs only the
parser. An error in `run` becomes one line on standard error (`failures`):

    OptionError                                  exit code 2: an argument is wrong
    PipelineError, OSError, a client's or        exit code 1
      Spark's error
    KeyboardInterrupt (SIGINT or SIGTERM)        exit code 130, with the text of `resume`
    ModuleNotFoundError of PySpark or PyArrow    exit code 1, and how to install them

Any other error is a bug and shows its traceback. An `OptionError` names the option as the user wrote it
(`OptionError("--topic", ...)`). Standard output has only the result, as text or with `--json` as one JSON
object; progress, notes and errors go to standard error.

    from barnabas.pipeline.cli.arguments import add_common_arguments, add_server_arguments, ...
    from barnabas.pipeline.cli.console import Console
    from barnabas.pipeline.cli.connectivity import check_connectivity
    from barnabas.pipeline.cli.session import open_session
    from barnabas.pipeline.cli.task_progress import task_progress
"""
