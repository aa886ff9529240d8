import { defineBlock, isUnset, key, type RuleOf, requires } from '@plat/config'
import { withoutTrailing } from '@plat/core'
import Type, { type Static } from 'typebox'

const schema = Type.Object({
  enabled: key.flag('Configuration from signed bundles.'),
  dir: key.text('Where a bundle is unpacked; required when enabled. Nothing else may be in it.'),
  trustedKeyFiles: key.texts('PEM; Ed25519, P-256, RSA, ML-DSA; required when enabled.'),
  trustedIssuers: key.texts('Expected issuers; any whose keys are trusted when empty.'),
  signaturePolicy: Type.Enum(['classical', 'hybrid', 'pq'], {
    default: 'classical',
    description: 'Signatures that must be there: a classical one, one of ML-DSA (`pq`), or both (`hybrid`).',
  }),
  statePath: key.text('Default `<auditPath>.config-bundle.json`.'),
  maxBytes: key.whole('Bytes of one bundle, packed and unpacked.', 64 * 1024 * 1024, 1),
  leewaySeconds: key.whole('Skew on the times of a bundle.', 60, 0),
  push: key.flag('`POST /v1/admin/config:bundle`.'),
  pull: key.group(
    {
      url: key.url('Where bundles are fetched.'),
      tokenFile: key.file('Bearer token for it; read for each request.'),
      caFile: key.file('PEM CA bundle trusted for it beside the system’s.'),
      maxBackoffSeconds: key.seconds('Longest pause after failures.', 300),
    },
    'Fetching.',
  ),
  dropDir: key.text('Scanned for tar.gz and tgz.'),
  pollSeconds: key.seconds('How often bundles are fetched, and the folder is scanned.', 30),
})

/** Warns about an enabled block without a source of bundles, or whose folder no setting reads. */
const bundlesComeAndAreRead: RuleOf<typeof schema> = ({ enabled, dir = '', push, pull, dropDir }, file) => {
  if (enabled !== true || dir === '') return []
  const comes = push === true || !isUnset(pull?.url) || !isUnset(dropDir)
  const isRead = JSON.stringify(file).includes(JSON.stringify(`${withoutTrailing(dir, '/')}/`).slice(0, -1))
  const warning = (path: string, message: string) => ({ path, message, severity: 'warning' }) as const
  return [
    ...(comes ? [] : [warning('configBundle.enabled', 'no bundle can come: set push, pull.url or dropDir')]),
    ...(isRead
      ? []
      : [warning('configBundle.dir', `no file of it is read: name some, such as policyFile ${dir}/policies.json`)]),
  ]
}

/** `configBundle` (docs/spec/gateway.md): signed configuration. */
export const configBundleBlock = defineBlock({
  path: 'configBundle',
  feature: 'config-bundle',
  schema,
  rules: [
    requires(
      'configBundle',
      ['dir', 'trustedKeyFiles'],
      ({ enabled }) => enabled === true,
      'with configBundle.enabled',
    ),
    bundlesComeAndAreRead,
  ],
})

export type ConfigBundleConfig = Readonly<Static<typeof configBundleBlock.schema>>
