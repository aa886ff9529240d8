import { defineBlock, key, requires } from '@plat/config'
import Type, { type Static } from 'typebox'
import { keyProblems } from '../../call/key-problems.ts'

/** `a2a` (docs/spec/gateway.md): agent-to-agent calls. */
export const a2aBlock = defineBlock({
  path: 'a2a',
  feature: 'a2a',
  schema: Type.Object({
    routesFile: key.file('A2A routing table.'),
    cardSigningKey: key.text(
      'URI of an Ed25519 key that signs Agent Cards; requires `a2a.publicURL`; unsigned when empty.',
    ),
    publicURL: key.url('External base URL in cards; default the host of the request.'),
    publicCards: key.flag('Serve cards without a token.'),
    cardCacheSeconds: key.seconds('Reuse of a verified remote card.', 300, 0),
    maxDelegationDepth: key.whole('Cap on the `act` chain of the caller.', 5, 0),
    pushNotificationHosts: key.texts('https host globs allowed for push-notification webhooks; refused when empty.'),
  }),
  rules: [
    requires('a2a', ['publicURL'], ({ cardSigningKey }) => cardSigningKey !== '', 'with a2a.cardSigningKey'),
    ({ cardSigningKey = '' }) => keyProblems('a2a.cardSigningKey', cardSigningKey, 'Ed25519'),
  ],
})

export type A2aConfig = Readonly<Static<typeof a2aBlock.schema>>
