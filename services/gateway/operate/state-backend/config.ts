import { defineBlock, key, type RuleOf, requires } from '@plat/config'
import Type, { type Static } from 'typebox'

const schema = Type.Object({
  type: key.choice(['file', 'postgres'], 'file', 'Files of one replica, or Postgres for several.'),
  dsnFile: key.file('File with the connection string, never inline; required for `postgres`.'),
  schema: key.text('Created if missing.', 'plat', '^[a-z_][a-z0-9_]{0,62}$'),
  maxConns: key.whole('Pool per process.', 10, 1),
  pollMillis: key.millis("Pull of other replicas' writes.", 250),
  leader: key.group(
    { retryMillis: key.millis('Election retry and lease check.', 1000) },
    'Which replica does what only one may.',
  ),
  counters: Type.Optional(
    Type.Enum(['local', 'shared'], {
      description: 'Where rate windows live; default `shared` for postgres, `local` for file.',
    }),
  ),
})

const sharedNeedsPostgres: RuleOf<typeof schema> = ({ counters, type }) =>
  counters === 'shared' && type !== 'postgres'
    ? [{ path: 'stateBackend.counters', message: 'shared needs stateBackend.type postgres', severity: 'error' }]
    : []

/** `stateBackend` (docs/spec/gateway.md): storage of state shared by replicas. */
export const stateBackendBlock = defineBlock({
  path: 'stateBackend',
  feature: 'state-backend',
  schema,
  rules: [
    requires('stateBackend', ['dsnFile'], ({ type }) => type === 'postgres', 'for postgres'),
    sharedNeedsPostgres,
  ],
})

export type StateBackendConfig = Readonly<Static<typeof schema>>
