"""What is only true for PySpark 4.3."""

import warnings


def keep_quiet_about_pandas() -> None:
    """Keep PySpark from warning of every pandas 3, in each job.

    What was tested together stands on the page of supported versions.
    """
    warnings.filterwarnings(
        "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
    )
    # PySpark itself passes what pandas 3 deprecates.
    warnings.filterwarnings("ignore", message="The copy keyword is deprecated", category=DeprecationWarning)
