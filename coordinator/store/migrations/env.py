"""Run by Alembic: applies migrations over the connection that `upgrade` hands in."""

from alembic import context

from coordinator.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
