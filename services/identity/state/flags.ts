import type { FlagTable } from '@plat/config'

export const stateFlags = {
  'state-dsn-file': {
    type: 'string',
    help: 'File with the DSN of a Postgres database in which replicas share nonces, binds and replays. Without it each has its own in memory.',
  },
} as const satisfies FlagTable
