import { type ConfigBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `configBundle` (document 3): signed configuration. */
export const configBundleBlock = {
  path: 'configBundle',
  feature: 'config-bundle',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Configuration from signed bundles.'),
    dir: key.text('Where a bundle is unpacked; required when enabled.'),
    trustedKeyFiles: key.texts('PEM; Ed25519, P-256, RSA, ML-DSA.'),
    trustedIssuers: key.texts('Expected issuers.'),
    signaturePolicy: key.choice(['classical', 'hybrid', 'pq'], 'classical', 'Signatures that must be there.'),
    statePath: key.text('Default `<auditPath>.config-bundle.json`.'),
    maxBytes: key.whole('Bytes of one bundle.', 64 * 1024 * 1024, 1),
    leewaySeconds: key.whole('Skew on the times of a bundle.', 60, 0),
    push: key.flag('`POST /v1/admin/config:bundle`.'),
    pull: key.group(
      {
        url: key.url('Where bundles are fetched.'),
        tokenFile: key.file('Token for it.'),
        caFile: key.file('Its authorities.'),
        maxBackoffSeconds: key.seconds('Longest pause after failures.', 300),
      },
      'Fetching.',
    ),
    dropDir: key.text('Scanned for tar.gz and tgz.'),
    pollSeconds: key.seconds('How often.', 30),
  }),
  rules: [requires('configBundle', ['dir'], ({ enabled }) => enabled === true, 'with configBundle.enabled')],
} satisfies ConfigBlock
