"""The control database: how it is opened, upgraded and waited for."""
