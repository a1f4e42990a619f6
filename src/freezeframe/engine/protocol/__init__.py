"""The interface of row engines, and engines that delegate."""
