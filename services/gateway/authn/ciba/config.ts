import { defineBlock, key, requires } from '@plat/config'
import Type, { type Static } from 'typebox'

/** `ciba` (docs/spec/gateway.md): the delegating user confirms on a device. */
export const cibaBlock = defineBlock({
  path: 'ciba',
  feature: 'ciba',
  schema: Type.Object({
    enabled: key.flag('Users confirm calls made for them on a device if a quorum has `userConfirmation`.'),
    issuer: key.url('Required when enabled.'),
    backchannelAuthenticationEndpoint: key.url('Default discovery.'),
    tokenEndpoint: key.url('Default discovery.'),
    jwksURL: key.url('Default discovery.'),
    clientID: key.text('Required when enabled.'),
    clientSecretFile: key.file('Its secret; read for each request.'),
    clientAuth: Type.Enum(['basic', 'post'], { default: 'basic', description: 'How the client authenticates.' }),
    caFile: key.file('PEM CA bundle trusted for the provider in addition to the system’s.', 'error'),
    scopes: key.texts('Scopes requested in addition to `openid`.'),
    acrValues: key.texts('Requested assurance; the ID token must have one of them.'),
    userClaim: key.text(
      'Claim that must name the user of the session; default `preferred_username`, then `email`, then `sub`.',
    ),
    requestedExpirySeconds: key.seconds('Time limit for the user; default the remaining life of the approval.', 0, 0),
    fallback: Type.Enum(['approvers', 'deny'], {
      default: 'approvers',
      description:
        'When the user cannot be prompted (unknown to the provider, no device, no provider): approvers decide alone, one at least, or the call is denied. A prompted user who did not respond has not agreed: denied.',
    }),
    bindingMessagePrefix: key.text(
      'Begin of the text that the user reads; followed by a code that the approval shows as well.',
      'PLAT',
      '^[a-zA-Z0-9._+/!?#-]{0,11}$',
    ),
  }),
  rules: [requires('ciba', ['issuer', 'clientID'], ({ enabled }) => enabled === true, 'with ciba.enabled')],
})

export type CibaConfig = Readonly<Static<typeof cibaBlock.schema>>
