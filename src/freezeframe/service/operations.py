"""The catalogue of operations: what changes something, by both doors, and the audit's name of it.

It is light: a command loads it without the store.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A change of a tenant or of the service.

    ``action`` is what the audit calls it, ``routes`` the ids of its operations in the API, ``commands`` the
    words of its commands.
    """

    action: str
    routes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


OPERATIONS = (
    Operation(
        "file.write",
        (
            *("write_file", "write_batch", "hotglue_write"),
            *("hotglue_set_config", "hotglue_patch_config", "hotglue_set_mapping", "hotglue_set_metadata"),
        ),
        ("file write", "file patch"),
    ),
    Operation("file.delete", ("delete_file", "delete_many", "hotglue_delete"), ("file delete",)),
    Operation("file.move", ("move_file",), ("file move",)),
    Operation("file.return", ("return_file",)),
    Operation("folder.create", ("create_folder",)),
    Operation("folder.move", ("move_folder",)),
    Operation("tag.set", ("set_tag",), ("tenant tag",)),
    Operation("tag.remove", ("remove_tag",), ("tenant untag",)),
    Operation("policy.set", ("set_policy",), ("tenant retention",)),
    Operation("tenant.restore", ("restore_tenant",), ("tenant restore",)),
    Operation("tenant.gc", (), ("gc", "tenant gc")),
    Operation("tenant.create", ("create_tenant",), ("tenant create",)),
    Operation("tenant.clone", ("clone_tenant",), ("tenant clone",)),
    Operation("tenant.delete", ("delete_tenant",), ("tenant delete",)),
    Operation("tenant.migrate", (), ("migrate",)),
    Operation("stream.restore", ("restore_stream",), ("stream restore",)),
    Operation("stream.drop", ("drop_stream",), ("stream drop",)),
    Operation("stream.import", ("import_stream",), ("stream import", "import")),
    Operation("stream.retype", (), ("stream retype",)),
    Operation("stream.release", (), ("stream release",)),
    Operation("stream.adopt", (), ("stream adopt",)),
    Operation("stream.repair", (), ("stream repair",)),
    Operation("rows.restore", ("restore_rows",)),
    Operation("rows.erase", (), ("tenant erase",)),
    Operation(
        "job.run",
        ("run_job", "repeat_job", "dry_run_job", "run_schedule", "run_group"),
        ("job submit", "job retry"),
    ),
    Operation("job.cancel", ("cancel_job",), ("job cancel",)),
    Operation("schedule.create", ("create_schedule",), ("schedule create",)),
    Operation("schedule.change", ("change_schedule",), ("schedule enable", "schedule disable")),
    Operation("schedule.delete", ("delete_schedule",), ("schedule delete",)),
    Operation("key.create", ("create_key",), ("key create",)),
    Operation("key.rotate", ("rotate_key",), ("key rotate",)),
    Operation("key.revoke", ("revoke_key",), ("key revoke",)),
    Operation("session.end", ("sign_out",), ("key sign-out",)),
    Operation("master_key.rotate", (), ("key rotate-master",)),
)
