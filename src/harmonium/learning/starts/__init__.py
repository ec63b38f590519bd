"""starts"""
