import { Type } from 'typebox'
import { closed, conditions, longCount, oneOf, text } from '../common.ts'

const { Optional } = Type

/** As the gateway reads times; an API server accepts lower case too. */
const TIME = '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$'
const NAME = '[A-Za-z0-9._-]{1,253}'
const named = (description: string, pattern: string) =>
  Optional(text(description, { minLength: 1, pattern: `^${pattern}$` }))
const anyText = (description: string) => Optional(text(description, { minLength: 1, maxLength: 512 }))

/** `AgentRevocation.spec`: one entry of the gateway's revocationsFile. */
export const agentRevocationSpecSchema = Type.Object(
  {
    target: Type.Object(
      {
        jti: anyText('A token, and every one that was exchanged or delegated from it.'),
        session: named('`<namespace>/<agent>/<session>`.', `${NAME}/${NAME}/${NAME}`),
        agent: named('`<namespace>/<agent>`.', `${NAME}/${NAME}`),
        namespace: named('Every session in it.', NAME),
        user: anyText('Every session that acts for the user; `<issuer>#<user>`: with tokens of that issuer.'),
        tenant: anyText('Every session of the tenant.'),
        all: Optional(Type.Unsafe<true>({ type: 'boolean', enum: [true], description: 'Everybody.' })),
      },
      { ...closed, minProperties: 1, maxProperties: 1, description: 'Who is meant: exactly one member.' },
    ),
    mode: Optional(oneOf(['revoke', 'suspend'], 'A suspension is meant to be lifted.', { default: 'revoke' })),
    reason: Optional(text('For people; callers never receive it.')),
    expiresAt: Optional(
      Type.String({
        format: 'date-time',
        maxLength: 64,
        pattern: TIME,
        description: 'When it ends; absent: with this object.',
      }),
    ),
  },
  closed,
)

export const agentRevocationStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
