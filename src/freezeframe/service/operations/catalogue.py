"""The catalogue of operations, from which both doors are made, and what the audit calls each change."""

from freezeframe.service.operations import deliveries, files, jobs, keys, rows, tenants
from freezeframe.service.operations.operation import Operation

# Their routes and commands do more than call and print: they stream, wait, ask, or select many tenants.
_BY_HAND = (
    Operation(
        "file.write",
        (
            *("write_file", "write_batch", "hotglue_write"),
            *("hotglue_set_config", "hotglue_patch_config", "hotglue_set_mapping", "hotglue_set_metadata"),
        ),
        ("file write", "file patch"),
    ),
    Operation("file.delete", ("hotglue_delete",)),
    Operation("tenant.gc", (), ("gc", "tenant gc")),
    Operation("tenant.create", ("create_tenant",), ("tenant create",)),
    Operation("tenant.clone", ("clone_tenant",), ("tenant clone",)),
    Operation("tenant.delete", ("delete_tenant",), ("tenant delete",)),
    Operation("tenant.revert", (), ("job revert",)),
    Operation("job.pull", (), ("job pull",)),
    Operation("tenant.migrate", (), ("migrate",)),
    Operation("stream.import", ("import_stream",), ("stream import", "import")),
    Operation("stream.retype", (), ("stream retype",)),
    Operation("stream.repair", (), ("stream repair",)),
    Operation("job.run", (), ("job submit",)),
    Operation("schedule.create", (), ("schedule create",)),
    Operation("schedule.change", (), ("schedule enable", "schedule disable")),
    Operation("schedule.delete", (), ("schedule delete",)),
    Operation("session.end", ("sign_out",)),
    Operation("master_key.rotate", (), ("key rotate-master",)),
)

OPERATIONS = (
    *(*files.OPERATIONS, *rows.OPERATIONS, *tenants.OPERATIONS, *deliveries.OPERATIONS),
    *(*jobs.OPERATIONS, *keys.OPERATIONS),
    *_BY_HAND,
)
