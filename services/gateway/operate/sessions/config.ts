import { defineBlock, key, type Problem, type RuleOf } from '@plat/config'
import Type, { type Static } from 'typebox'
import { PLACEHOLDERS, placeholdersIn } from './trace-url.ts'

/** Maximum page sizes, in items (docs/spec/gateway.md, "Limits"). */
export const LIST_MAX = 5000
export const TIMELINE_MAX = 10_000

const schema = Type.Object({
  traceURLTemplate: Type.String({
    default: '',
    pattern: '^$|^https?://.*\\{traceId\\}',
    description: 'Link to a trace. Placeholders `{traceId}` (required), `{spanId}`, `{session}`, `{namespace}`.',
  }),
  timelineMaxItems: key.whole('Page size of `GET /v1/sessions/{id}/timeline`.', 1000, 1, TIMELINE_MAX),
  listMaxSessions: key.whole('Page size of `GET /v1/sessions`.', 500, 1, LIST_MAX),
})

/** An unknown placeholder would stay literally in every link. */
const knownPlaceholders: RuleOf<typeof schema> = ({ traceURLTemplate: template = '' }): Problem[] => {
  return placeholdersIn(template)
    .filter((name) => !PLACEHOLDERS.has(name))
    .map((name) => ({
      path: 'sessions.traceURLTemplate',
      message: `has no placeholder {${name}}: use ${[...PLACEHOLDERS].map((known) => `{${known}}`).join(', ')}`,
      severity: 'error',
    }))
}

/** `sessions` (docs/spec/gateway.md): the session list, timelines, and links to traces. */
export const sessionsBlock = defineBlock({
  path: 'sessions',
  feature: 'sessions',
  schema,
  rules: [knownPlaceholders],
})

export type SessionsConfig = Readonly<Static<typeof sessionsBlock.schema>>
