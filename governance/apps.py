from django.apps import AppConfig
from django.contrib.admin import apps as admin


class GovernanceConfig(AppConfig):
    name = "governance"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Governance"


class SuperuserAdminConfig(admin.AdminConfig):
    """Django's admin behind our own door."""

    default = False
    default_site = "governance.admin_site.SuperuserSite"
