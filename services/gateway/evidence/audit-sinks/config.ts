import { resolve } from 'node:path'
import { defineBlock, isUnset, key, type Problem, type Rule, uniqueNames } from '@plat/config'
import { jurisdictionOf, placeContradictions } from '@plat/resources/regions'
import Type, { type Static } from 'typebox'
import { Check } from 'typebox/value'

const MIB = 1024 * 1024

const TYPES = ['syslog', 'http', 'jsonl', 'sentinel', 'chronicle', 'cloudwatch', 'splunk-hec'] as const

/** One receiver of audit records. */
const sink = Type.Object({
  name: key.needed('Unique name.', '^[a-z0-9][a-z0-9-]{0,39}$'),
  tenant: key.text(
    'Tenant of `tenantsFile` whose ledger is streamed; default: the ledger of `auditPath`.',
    '',
    '^(?:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$',
  ),
  type: Type.Enum([...TYPES], { description: 'Protocol.' }),
  address: key.text('Of `syslog`: `tcp://host:port` or `tls://host:port`.', '', '^(?:(?:tcp|tls)://[^\\s/@]+:\\d+)?$'),
  url: key.url('Where records go; no credentials in it. Of `splunk-hec` and `sentinel` without a path.'),
  path: key.text('File of `jsonl`.'),
  format: Type.Optional(
    Type.Enum(['json', 'rfc5424-json', 'cef', 'ocsf'], {
      description: 'Default rfc5424-json for syslog, ocsf for http, json for the others.',
    }),
  ),
  caFile: key.file('Authorities of the receiver, beside those of the system.'),
  certFile: key.file('With `keyFile`: mutual TLS.'),
  keyFile: key.file('With `certFile`: mutual TLS.'),
  serverName: key.text('Name in the certificate of the receiver.'),
  headersFile: key.file('`Name: value` lines.'),
  batchSize: key.whole('Records of one delivery.', 100, 1, 10_000),
  pollIntervalMillis: key.millis('Time between two looks at the ledger; a backlog is delivered without a pause.', 1000),
  facility: key.whole('Of syslog.', 13, 0, 23),
  sdId: key.text('Of syslog: name of the structured data.', 'plat@32473', '^[!#-<>-\\\\^-~]{1,32}$'),
  timeoutSeconds: key.seconds('Time for one delivery.', 15),
  tokenFile: key.file('Token of the receiver.'),
  awsCredentialsDir: key.text('Folder with `access-key-id`, `secret-access-key` and, if need be, `session-token`.'),
  credentials: Type.Optional(Type.Enum(['aws', 'azure', 'gcp'], { description: 'Credentials of `cloudCredentials`.' })),
  dcrImmutableId: key.text('Of `sentinel`.'),
  streamName: key.text('Of `sentinel`.'),
  chronicleMode: key.choice(['logs', 'udm'], 'logs', 'Of `chronicle`.'),
  logType: key.text('Of `chronicle`.'),
  region: key.text('Of `chronicle` and `cloudwatch`.', '', '^(?:[a-z0-9-]{1,40})?$'),
  jurisdiction: key.jurisdiction(
    'Where the receiver runs; checked against the SovereigntyPolicy; default by the cloud region.',
  ),
  logGroup: key.text('Of `cloudwatch`.'),
  logStream: key.text('Of `cloudwatch`.'),
  index: key.text('Of `splunk-hec`.'),
  source: key.text('Of `splunk-hec`.'),
  sourceType: key.text('Of `splunk-hec`.', 'plat:audit'),
  maxBatchBytes: Type.Optional(Type.Integer({ minimum: 1, description: 'Bytes of one delivery; default 900000.' })),
  deadLetterPath: key.text('Default `<cursor dir>/<name>.deadletter.jsonl`.'),
  deadLetterMaxBytes: key.whole('When full, delivery stops instead of dropping.', 64 * MIB, 1),
})

/** A sink of gateway.json with defaults; unset members are `''` or absent. */
export type SinkConfig = Static<typeof sink>
export type SinkType = SinkConfig['type']

/** Jurisdiction of a sink's receiver; empty if unknown. */
export function placeOfSink({ url: upstream, region, jurisdiction }: SinkConfig): string {
  return jurisdictionOf({ upstream, region, jurisdiction }, null) ?? ''
}

/** Default of `maxBatchBytes`: below the limit of one megabyte that most receivers have. */
const BATCH_BYTES = 900_000

/** Maximum size of one delivery, in bytes; a single larger record is sent alone. */
export function batchBytesOf({ maxBatchBytes }: SinkConfig): number {
  return maxBatchBytes ?? BATCH_BYTES
}

const TLS = ['caFile', 'certFile', 'keyFile', 'serverName'] as const
const HTTP = [...TLS, 'url', 'headersFile'] as const

interface TypeRules {
  readonly needs: readonly (keyof SinkConfig)[]
  readonly takes: readonly (keyof SinkConfig)[]
  /** Exactly one of them must authenticate the gateway. */
  readonly shows?: readonly (keyof SinkConfig)[]
  readonly cloud?: SinkConfig['credentials']
}

/** Required and allowed keys of each type; keys with defaults are not checked. */
const RULES: Readonly<Record<SinkType, TypeRules>> = {
  syslog: { needs: ['address'], takes: TLS },
  http: { needs: ['url'], takes: [...HTTP, 'tokenFile'] },
  jsonl: { needs: ['path'], takes: [] },
  sentinel: {
    needs: ['url', 'dcrImmutableId', 'streamName'],
    takes: HTTP,
    shows: ['tokenFile', 'credentials'],
    cloud: 'azure',
  },
  chronicle: {
    needs: ['url'],
    takes: [...HTTP, 'logType', 'region'],
    shows: ['tokenFile', 'credentials'],
    cloud: 'gcp',
  },
  cloudwatch: {
    needs: ['region', 'logGroup', 'logStream'],
    takes: HTTP,
    shows: ['awsCredentialsDir', 'credentials'],
    cloud: 'aws',
  },
  'splunk-hec': { needs: ['url', 'tokenFile'], takes: [...HTTP, 'index', 'source'] },
}

/** Keys that only some types have. */
const OF_A_TYPE: readonly (keyof SinkConfig)[] = [
  ...new Set(Object.values(RULES).flatMap(({ needs, takes, shows = [] }) => [...needs, ...takes, ...shows])),
]

/** Rules for sinks beyond the schema. */
const sinksFit: Rule = ({ auditSinks }, { auditPath, tenantsFile = '' }) => {
  if (!Array.isArray(auditSinks)) return []
  return auditSinks.flatMap((one: unknown, index) =>
    Check(sink, one)
      ? [...faultsOf(one, auditPath), ...tenantFaults(one, tenantsFile)].map(
          ([name, message]): Problem => ({ path: `auditSinks[${index}].${name}`, message, severity: 'error' }),
        )
      : [],
  )
}

/** Without the list of tenants the sink would never receive a record. */
function tenantFaults({ tenant }: SinkConfig, tenantsFile: unknown): readonly Fault[] {
  return tenant !== '' && tenantsFile === '' ? [['tenant', 'needs tenantsFile']] : []
}

type Fault = readonly [name: keyof SinkConfig, message: string]

function faultsOf(one: SinkConfig, auditPath: unknown): readonly Fault[] {
  const { needs, takes, shows = [], cloud } = RULES[one.type]
  const ofType = `with type ${one.type}`
  const known = new Set([...needs, ...takes, ...shows])
  const set = (name: keyof SinkConfig) => !isUnset(one[name])
  const faults: Fault[] = needs.filter((name) => !set(name)).map((name) => [name, `is required ${ofType}`])
  for (const name of OF_A_TYPE) if (set(name) && !known.has(name)) faults.push([name, `has no meaning ${ofType}`])
  const [first = 'name', second] = shows.filter(set)
  if (shows.length > 0 && first === 'name')
    faults.push([shows[0] ?? first, `this or ${shows[1]} is required ${ofType}`])
  if (second !== undefined) faults.push([second, `must not be set beside ${first}`])
  if (one.credentials !== undefined && cloud !== undefined && one.credentials !== cloud)
    faults.push(['credentials', `must be ${cloud} ${ofType}`])
  for (const [name, other] of [
    ['certFile', 'keyFile'],
    ['keyFile', 'certFile'],
  ] as const)
    if (set(other) && !set(name)) faults.push([name, `is required with ${other}`])
  const { url: upstream, region, jurisdiction } = one
  faults.push(...placeContradictions({ upstream, region, jurisdiction }, null))
  return [...faults, ...urlFaults(one), ...formatFaults(one), ...pathFaults(one, auditPath)]
}

/** Configuration files have many readers: secrets belong into separate files. */
function urlFaults({ url }: SinkConfig): readonly Fault[] {
  if (url === '') return []
  const { username, password } = new URL(url)
  return username === '' && password === '' ? [] : [['url', 'must hold no credentials: use tokenFile or headersFile']]
}

function formatFaults({ type, format, chronicleMode, logType }: SinkConfig): readonly Fault[] {
  if (type === 'sentinel' && format !== undefined && format !== 'json' && format !== 'ocsf')
    return [['format', 'must be json or ocsf with type sentinel: its records are JSON']]
  if (type !== 'chronicle') return []
  if (chronicleMode === 'logs') return logType === '' ? [['logType', 'is required with chronicleMode logs']] : []
  return [
    ...(format === undefined ? [] : [['format', 'must not be set with chronicleMode udm'] as const]),
    ...(logType === '' ? [] : [['logType', 'must not be set with chronicleMode udm'] as const]),
  ]
}

/** Sinks must not write the ledger file. */
function pathFaults(one: SinkConfig, auditPath: unknown): readonly Fault[] {
  if (typeof auditPath !== 'string') return []
  const names = ['path', 'deadLetterPath'] as const
  const ledger = resolve(auditPath)
  return names
    .filter((name) => one[name] !== '' && resolve(one[name]) === ledger)
    .map((name) => [name, 'must not be auditPath'])
}

/** `auditSinks` (docs/spec/gateway.md): streams of audit records. */
export const auditSinksBlock = defineBlock({
  path: '',
  feature: 'audit-sinks',
  schema: Type.Object({
    auditSinks: Type.Array(sink, { default: [], description: 'SIEM streaming.' }),
  }),
  rules: [uniqueNames('auditSinks'), sinksFit],
})
