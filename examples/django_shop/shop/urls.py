from django.contrib import admin
from django.urls import path

from orders import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("orders/", views.create),
    path("orders/refused/", views.create_and_refuse),
    path("orders/parts/", views.create_in_parts),
    path("orders/async/", views.create_async),
]
