"""Running a tenant's transformation script as one job: its folders, its process, its one commit."""
