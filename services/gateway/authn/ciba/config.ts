import { defineBlock, key, requires } from '@plat/config'
import Type, { type Static } from 'typebox'

/** `ciba` (docs/spec/gateway.md): the delegating user confirms on a device. */
export const cibaBlock = defineBlock({
  path: 'ciba',
  feature: 'ciba',
  schema: Type.Object({
    enabled: key.flag(
      'Users confirm on a device of theirs what is done for them, where a quorum has `userConfirmation`.',
    ),
    issuer: key.url('Required when enabled.'),
    backchannelAuthenticationEndpoint: key.url('Default discovery.'),
    tokenEndpoint: key.url('Default discovery.'),
    jwksURL: key.url('Default discovery.'),
    clientID: key.text('Required when enabled.'),
    clientSecretFile: key.file('Its secret; read for each request.'),
    clientAuth: Type.Enum(['basic', 'post'], { default: 'basic', description: 'How the client authenticates.' }),
    caFile: key.file('PEM CA bundle trusted for the provider beside the system’s.', 'error'),
    scopes: key.texts('Scopes that are asked for beside `openid`.'),
    acrValues: key.texts('Assurance that is asked for; the ID token must have one of them.'),
    userClaim: key.text(
      'Claim that must name the user of the session; default `preferred_username`, then `email`, then `sub`.',
    ),
    requestedExpirySeconds: key.seconds(
      'How long the user may take; default the remaining life of the approval.',
      0,
      0,
    ),
    fallback: Type.Enum(['approvers', 'deny'], {
      default: 'approvers',
      description:
        'When the user cannot be asked (unknown to the provider, no device, no provider): approvers decide alone, one at least, or the call is denied. A user who was asked and did not answer has not agreed: denied.',
    }),
    bindingMessagePrefix: key.text(
      'Begins what the user reads; a code follows, which the approval shows as well.',
      'PLAT',
      '^[a-zA-Z0-9._+/!?#-]{0,11}$',
    ),
  }),
  rules: [requires('ciba', ['issuer', 'clientID'], ({ enabled }) => enabled === true, 'with ciba.enabled')],
})

export type CibaConfig = Readonly<Static<typeof cibaBlock.schema>>
