import { type ConfigBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `ciba` (document 3): the delegating user confirms on a device. */
export const cibaBlock = {
  path: 'ciba',
  feature: 'ciba',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Confirmation by the user.'),
    issuer: key.url('Required when enabled.'),
    backchannelAuthenticationEndpoint: key.url('Default discovery.'),
    tokenEndpoint: key.url('Default discovery.'),
    jwksURL: key.url('Default discovery.'),
    clientID: key.text('Required when enabled.'),
    clientSecretFile: key.file('Its secret.'),
    clientAuth: key.choice(['basic', 'post'], 'basic', 'How the client authenticates.'),
    caFile: key.file('Its authorities.'),
    scopes: key.texts('Scopes that are asked for.'),
    acrValues: key.texts('Assurance that is asked for.'),
    userClaim: key.text('Default `preferred_username`, then `email`, then `sub`.'),
    requestedExpirySeconds: key.seconds('Default the remaining life of the approval.', 0, 0),
    fallback: key.choice(['approvers', 'deny'], 'approvers', 'When the user cannot be asked.'),
    bindingMessagePrefix: key.text('Begins what the user reads.', 'PLAT'),
  }),
  rules: [requires('ciba', ['issuer', 'clientID'], ({ enabled }) => enabled === true, 'with ciba.enabled')],
} satisfies ConfigBlock
