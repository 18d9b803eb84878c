"""The demo project of `manage.py demo` (SPEC 8.1): a fictional team whose memory shows every state the product knows.

* `people`: who is in it and how they log in
* `stage`, `steps`: what can happen, each step one call of a real verb
* `opening`, `weeks`, `inbox`, `library`: what happened, as data
* `workspace/`: the files the team kept before, which are imported
* `making`: plays the steps in the order of their times, once, in one transaction
"""
