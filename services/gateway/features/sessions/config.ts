import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

/** `activity` (document 3): when a session was last used. */
export const activityBlock = {
  path: 'activity',
  feature: 'sessions',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Write last-activity annotations (idle suspend).'),
    intervalSeconds: key.seconds('Throttle per session.', 60),
    apiServer: key.url('Address of the cluster API; in-cluster when empty.'),
    tokenFile: key.file('Token for it; in-cluster when empty.'),
    caFile: key.file('Its authorities; in-cluster when empty.'),
  }),
} satisfies ConfigBlock

/** `sessions` (document 3): the session list and timelines. */
export const sessionsBlock = {
  path: 'sessions',
  feature: 'sessions',
  built: false,
  schema: Type.Object({
    traceURLTemplate: key.text(
      'Placeholders `{traceId}` (required), `{spanId}`, `{session}`, `{namespace}`.',
      '',
      '^$|\\{traceId\\}',
    ),
    timelineMaxItems: key.whole('Page size of `GET /v1/sessions/{id}/timeline`.', 1000, 1, 10_000),
    listMaxSessions: key.whole('Page size of `GET /v1/sessions`.', 500, 1, 5000),
  }),
} satisfies ConfigBlock
