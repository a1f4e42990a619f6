"""Frames and rows: conversion of pandas, Arrow and Python values, validated batches, row hashes."""
