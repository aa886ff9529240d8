import { type ConfigBlock, key } from '@plat/config'
import Type, { type Static } from 'typebox'

/** Items of the largest pages (document 3, "Limits"). */
export const LIST_MAX = 5000
export const TIMELINE_MAX = 10_000

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

/** `sessions` (document 3): the session list and timelines. Records name no trace yet, so none is linked. */
export const sessionsBlock = {
  path: 'sessions',
  feature: 'sessions',
  built: true,
  schema: Type.Object({
    traceURLTemplate: Type.String({
      default: '',
      pattern: '^$|\\{traceId\\}',
      description: 'Placeholders `{traceId}` (required), `{spanId}`, `{session}`, `{namespace}`.',
      built: false,
    }),
    timelineMaxItems: key.whole('Page size of `GET /v1/sessions/{id}/timeline`.', 1000, 1, TIMELINE_MAX),
    listMaxSessions: key.whole('Page size of `GET /v1/sessions`.', 500, 1, LIST_MAX),
  }),
} satisfies ConfigBlock

export type SessionsConfig = Readonly<Static<typeof sessionsBlock.schema>>
