import { Type } from 'typebox'
import { closed, conditions, longCount, text, texts } from './common.ts'

const { Optional } = Type

/** `ConnectedAccount.spec`: records that a user has connected a provider. Written by the gateway; never contains a token. */
export const connectedAccountSpecSchema = Type.Object(
  {
    user: text('Whose account it is.', { minLength: 1 }),
    provider: text('Where, as `tokenVault.providers` names it.', { minLength: 1, maxLength: 63 }),
    scopes: Optional(texts('What the provider has granted.')),
    expiresAt: Optional(
      Type.String({
        format: 'date-time',
        maxLength: 64,
        description: 'When the access token ends; absent where the provider does not say.',
      }),
    ),
  },
  closed,
)

export const connectedAccountStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
