import { dirname, resolve } from 'node:path'
import { defineBlock, isUnset, key, type Problem, type Rule, requiresTop } from '@plat/config'
import Type, { type Static } from 'typebox'

/** Compression of sealed segments of the ledger (docs/spec/gateway.md). */
export const compressionBlock = defineBlock({
  path: '',
  feature: 'retention',
  schema: Type.Object({
    auditSegmentCompression: key.choice(
      ['none', 'zstd'],
      'none',
      'Compression of sealed segments; `plat audit`, `zstd -dc` and the script of docs/verify.md read them.',
    ),
  }),
})

const ARCHIVES = ['none', 'delete', 'file', 's3'] as const
type Archive = (typeof ARCHIVES)[number]

const retention = Type.Object({
  archive: Type.Enum([...ARCHIVES], {
    default: 'none',
    description:
      '`none`: sealed segments stay; `delete`: they are deleted; `file`, `s3`: they are copied there, read back and then deleted here.',
  }),
  days: key.whole('Age from which a segment leaves, in days; 0: any age.', 0),
  bytes: key.whole('Size of all sealed segments above which the oldest leave; 0: any size.', 0),
  tenants: Type.Record(
    Type.String(),
    Type.Object({
      days: Type.Optional(Type.Integer({ minimum: 0, description: 'Instead of `auditRetention.days`.' })),
      bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Instead of `auditRetention.bytes`.' })),
    }),
    { default: {}, description: 'Limits of the ledgers of tenants, by the name of the tenant of `tenantsFile`.' },
  ),
  path: key.text('Folder of `file`, not that of the ledger.'),
  url: key.url('Of `s3`: bucket and folder, `https://s3.example/bucket/folder`.'),
  region: key.text('Of `s3`.', '', '^(?:[a-z0-9-]{1,40})?$'),
  awsCredentialsDir: key.text(
    'Of `s3`: folder with `access-key-id`, `secret-access-key` and, if need be, `session-token`.',
  ),
  credentials: Type.Optional(Type.Enum(['aws'], { description: 'Of `s3`: credentials of `cloudCredentials`.' })),
  caFile: key.file('Of `s3`: authorities of the server, beside those of the system.'),
  timeoutSeconds: key.seconds('Of `s3`: time for one part.', 60),
  jurisdiction: key.jurisdiction('Where the archive runs; checked against the SovereigntyPolicy.'),
})

export type RetentionConfig = Static<typeof retention>

type Block = Readonly<Record<string, unknown>>

/** Required and allowed keys of each archive. */
const KEYS: Readonly<Record<Archive, { readonly needs: readonly string[]; readonly takes: readonly string[] }>> = {
  none: { needs: [], takes: [] },
  delete: { needs: [], takes: [] },
  file: { needs: ['path'], takes: ['path'] },
  s3: {
    needs: ['url', 'region'],
    takes: ['url', 'region', 'awsCredentialsDir', 'credentials', 'caFile', 'jurisdiction'],
  },
}
const OF_AN_ARCHIVE = [...new Set(Object.values(KEYS).flatMap(({ takes }) => takes))]

/** Characters that S3 and its clients encode alike. */
const PLAIN_PATH = /^[A-Za-z0-9._~/-]*$/

const fits: Rule = (block, { auditPath }) =>
  problemsOf(block, auditPath).map(
    ([name, message]): Problem => ({ path: `auditRetention.${name}`, message, severity: 'error' }),
  )

function problemsOf(block: Block, auditPath: unknown): readonly (readonly [name: string, message: string])[] {
  const archive = ARCHIVES.find((one) => one === block.archive) ?? 'none'
  const { needs, takes } = KEYS[archive]
  const isSet = (name: string) => !isUnset(block[name])
  const isLimited = [block.days, block.bytes].some((limit) => limit !== 0 && limit !== undefined)
  const problems: (readonly [string, string])[] = []
  if (archive === 'none' && isLimited)
    problems.push(['archive', 'must be delete, file or s3 with days or bytes: none keeps everything'])
  if (archive !== 'none' && !isLimited) problems.push(['days', `this or bytes is required with archive ${archive}`])
  for (const name of needs) if (!isSet(name)) problems.push([name, `is required with archive ${archive}`])
  for (const name of OF_AN_ARCHIVE)
    if (isSet(name) && !takes.includes(name)) problems.push([name, `has no meaning with archive ${archive}`])
  if (archive === 's3' && isSet('awsCredentialsDir') === isSet('credentials'))
    problems.push(['awsCredentialsDir', 'this or credentials is required with archive s3, not both'])
  if (archive === 's3') problems.push(...urlProblems(String(block.url)))
  if (archive === 'file' && isSameFolder(block.path, auditPath))
    problems.push(['path', 'must not be the folder of auditPath'])
  return problems
}

function urlProblems(text: string): readonly (readonly [string, string])[] {
  if (!URL.canParse(text)) return []
  const { username, password, pathname, search } = new URL(text)
  if (username !== '' || password !== '') return [['url', 'must hold no credentials: use awsCredentialsDir']]
  if (search !== '' || !PLAIN_PATH.test(pathname))
    return [['url', 'must have a path of letters, digits and ._~- only, and no query']]
  return []
}

function isSameFolder(path: unknown, auditPath: unknown): boolean {
  return typeof path === 'string' && typeof auditPath === 'string' && resolve(path) === dirname(resolve(auditPath))
}

/** `auditRetention` (docs/spec/gateway.md): when sealed segments leave, and where they go. */
export const retentionBlock = defineBlock({
  path: 'auditRetention',
  feature: 'retention',
  schema: retention,
  rules: [
    fits,
    requiresTop(
      'auditCheckpointKey',
      ({ archive }) => archive !== 'none',
      'with auditRetention.archive: only what a signed checkpoint covers may leave',
    ),
  ],
})
