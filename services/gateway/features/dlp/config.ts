import { type ConfigBlock, key } from '@plat/config'
import Type from 'typebox'

const ACTIONS = ['off', 'audit', 'redact', 'deny'] as const

const profile = Type.Object({
  detectors: key.texts(
    'Default every validated detector except `email`, `phone_e164`, `ipv4_private`, `high_entropy_secret`.',
  ),
  custom: key.groups(
    {
      id: key.needed('Name of the detector.', '^[a-z0-9_]{1,40}$'),
      regex: key.needed('Linear-time regular expression.'),
      secret: key.flag('Counts as a secret for `onSecret`.'),
    },
    'Own detectors.',
  ),
  requestAction: key.choice(ACTIONS, 'redact', 'What a hit in arguments does.'),
  responseAction: key.choice(ACTIONS, 'redact', 'What a hit in an answer does.'),
  onSecret: Type.Optional(Type.Enum([...ACTIONS], { description: 'What a secret does, in both directions.' })),
  maxScanBytes: key.whole('Bytes that are read of one message.', 1024 * 1024, 1),
  onOversize: Type.Optional(
    Type.Enum(['audit', 'deny'], { description: 'Larger messages; default `deny` where enforcing, else `audit`.' }),
  ),
  streamCarryBytes: key.whole('Bytes kept between two frames of a stream; -1 disables.', 256, -1, 65_536),
  entropyMinLength: key.whole('Shortest text that can be a random secret.', 32, 1),
  entropyThreshold: key.ratio('Bits per character from which text is random.', 4.3, 0, 8),
})

/** Named profiles of data-loss prevention (document 3). */
export const dlpProfilesBlock = {
  path: '',
  feature: 'dlp',
  built: false,
  schema: Type.Object({
    dlpProfiles: Type.Record(Type.String({ pattern: '^[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?$' }), profile, {
      default: {},
      description: 'Named profiles.',
    }),
  }),
} satisfies ConfigBlock

/** `dlp` (document 3): which profile reads what; a server or route may name its own. */
export const dlpBlock = {
  path: 'dlp',
  feature: 'dlp',
  built: false,
  schema: Type.Object({
    defaultProfile: key.text('Profile of everything that has no nearer one.'),
    namespaces: key.map(Type.String(), 'Namespace to profile.'),
    servers: key.map(Type.String(), 'Server to profile; before `namespaces`.'),
    models: key.map(Type.String(), 'Route to profile; before `namespaces`.'),
  }),
} satisfies ConfigBlock
