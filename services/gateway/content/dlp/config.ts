import { defineBlock, key, memberPath, type Problem, type RuleOf, type Unfinished } from '@plat/config'
import { closest, isObject } from '@plat/core'
import Type, { type Static } from 'typebox'
import { DETECTOR_IDS } from './detectors/table.ts'
import { expressionFault } from './scan/custom.ts'

/** Binding that disables detection; no profile can have this name. */
export const NO_PROFILE = 'none'

const action = (options: { readonly default?: string; readonly description: string }) =>
  Type.Enum(['off', 'audit', 'redact', 'deny'], options)

export const profileSchema = Type.Object({
  detectors: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description:
        'Default every validated detector: all but `email`, `phone_e164`, `ipv4_private`, `high_entropy_secret`. [detectors.md](detectors.md) lists them.',
    }),
  ),
  custom: key.groups(
    {
      id: key.needed('Name of the detector.', '^[a-z0-9_]{1,40}$'),
      regex: key.needed('Linear-time regular expression (RE2).'),
      secret: key.flag('Counts as a secret for `onSecret`.'),
    },
    'Own detectors.',
  ),
  requestAction: action({ default: 'redact', description: 'Action for a hit in arguments.' }),
  responseAction: action({ default: 'redact', description: 'Action for a hit in a response.' }),
  onSecret: Type.Optional(action({ description: 'Action for a secret, in both directions, if it is stricter.' })),
  maxScanBytes: key.whole('Scanned bytes of one message.', 1024 * 1024, 1),
  onOversize: Type.Optional(
    Type.Enum(['audit', 'deny'], { description: 'Larger messages; default `deny` where enforcing, else `audit`.' }),
  ),
  streamCarryBytes: key.whole('Bytes kept between two frames of a stream; -1 disables.', 256, -1, 65_536),
  entropyMinLength: key.whole('Minimum length of a random secret.', 32, 1, 512),
  entropyThreshold: key.ratio('Minimum bits per character of random text.', 4.3, 0, 8),
})

const profilesSchema = Type.Object({
  dlpProfiles: Type.Record(Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' }), profileSchema, {
    default: {},
    description: 'Named profiles.',
  }),
})

type Profile = Unfinished<Static<typeof profileSchema>>

/** Profiles must name existing detectors, and custom ones must be valid. */
const detectorsWork: RuleOf<typeof profilesSchema> = ({ dlpProfiles = {} }) =>
  Object.entries(dlpProfiles).flatMap(([name, profile = {}]) =>
    [...detectorProblems(profile), ...customProblems(profile)].map(({ path, message }) =>
      problem(`dlpProfiles.${name}${path}`, message),
    ),
  )

type DetectorProblem = Pick<Problem, 'path' | 'message'>

function detectorProblems({ detectors = [] }: Profile): DetectorProblem[] {
  return detectors.flatMap((id, index) => {
    if (id === undefined || DETECTOR_IDS.includes(id)) return []
    const near = closest(id, DETECTOR_IDS)
    const message = near === null ? `unknown detector ${id}` : `unknown detector ${id}, did you mean ${near}?`
    return [{ path: `.detectors[${index}]`, message }]
  })
}

function customProblems({ custom = [] }: Profile): DetectorProblem[] {
  const seen = new Set(DETECTOR_IDS)
  return custom.flatMap(({ id, regex = '' } = {}, index): DetectorProblem[] => {
    const path = `.custom[${index}]`
    const fault = regex === '' ? null : expressionFault(regex)
    const isTaken = id !== undefined && seen.has(id)
    if (id !== undefined) seen.add(id)
    return [
      ...(isTaken ? [{ path: `${path}.id`, message: `there is a detector ${id} already: choose another name` }] : []),
      ...(fault === null ? [] : [{ path: `${path}.regex`, message: `invalid expression: ${fault}` }]),
    ]
  })
}

const nameIsFree: RuleOf<typeof profilesSchema> = ({ dlpProfiles = {} }) =>
  Object.hasOwn(dlpProfiles, NO_PROFILE)
    ? [problem(`dlpProfiles.${NO_PROFILE}`, 'none switches detection off: choose another name')]
    : []

/** Named profiles of data-loss prevention (docs/spec/gateway.md). */
export const dlpProfilesBlock = defineBlock({
  path: '',
  feature: 'dlp',
  schema: profilesSchema,
  rules: [detectorsWork, nameIsFree],
})

const bindingsSchema = Type.Object({
  defaultProfile: key.text('Default profile.'),
  namespaces: key.map(Type.String(), "Caller's namespace to profile."),
  servers: key.map(Type.String(), 'Server to profile, as `<namespace>/<name>` or `<name>`; before `namespaces`.'),
  models: key.map(Type.String(), 'Route to profile; before `namespaces`.'),
})

/** Bindings must name existing profiles. */
const profilesExist: RuleOf<typeof bindingsSchema> = (dlp, { dlpProfiles, models }) => {
  const known = Object.keys(objectOf(dlpProfiles))
  const bindings = [
    ['dlp.defaultProfile', dlp.defaultProfile] as const,
    ...(['namespaces', 'servers', 'models'] as const).flatMap((kind) =>
      Object.entries(dlp[kind] ?? {}).map(([name, profile]) => [memberPath(`dlp.${kind}`, name), profile] as const),
    ),
    ...Object.entries(objectOf(models)).map(
      ([name, route]) => [`${memberPath('models', name)}.dlpProfile`, objectOf(route).dlpProfile] as const,
    ),
  ]
  return bindings.flatMap(([path, profile]) => {
    if (typeof profile !== 'string' || profile === '' || profile === NO_PROFILE || known.includes(profile)) return []
    const near = closest(profile, known)
    return [problem(path, `no profile ${profile} in dlpProfiles${near === null ? '' : `, did you mean ${near}?`}`)]
  })
}

/** `dlp` (docs/spec/gateway.md): bindings of profiles; a server or route may name its own. */
export const dlpBlock = defineBlock({
  path: 'dlp',
  feature: 'dlp',
  schema: bindingsSchema,
  rules: [profilesExist],
})

function problem(path: string, message: string): Problem {
  return { path, message, severity: 'error' }
}

/** A member of another block of the file, which has no type here. */
function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? { ...value } : {}
}
