from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = [("tenure", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=80)),
                ("state", models.CharField(default="new", max_length=20)),
            ],
        ),
        # The schema of the jobs exists when migrations that depend on it run.
        migrations.RunSQL("create table uses_tenure as select count(*) from tenure.jobs", "drop table uses_tenure"),
    ]
