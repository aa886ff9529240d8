import { defineBlock, key, LONGEST_SECONDS } from '@plat/config'
import Type from 'typebox'

/** Policies (docs/spec/gateway.md). */
export const policyBlock = defineBlock({
  path: '',
  feature: 'policy',
  schema: Type.Object({
    policyFile: Type.String({ minLength: 1, file: 'fails closed', description: 'Compiled policies, hot-reloaded.' }),
    policyReloadSeconds: Type.Integer({
      default: 2,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'Poll interval of every hot-reloaded file.',
    }),
    modelPolicy: Type.Enum(['scope-only', 'policy'], {
      default: 'scope-only',
      description: '`scope-only` or `policy` (evaluates policy with server `llm/<route>`).',
    }),
  }),
})

/** `policy.rego` (docs/spec/gateway.md): the external policy engine. */
export const regoBlock = defineBlock({
  path: 'policy.rego',
  feature: 'policy',
  schema: Type.Object({
    url: Type.String({
      default: '',
      format: 'http-url',
      description: 'External policy-engine decision URL; every decision is also evaluated there; the strictest wins.',
    }),
    timeoutMs: Type.Integer({ default: 250, minimum: 1, description: 'Budget; a timeout denies.' }),
    enforcement: Type.Enum(['enforce', 'dryRun'], { default: 'enforce', description: '`enforce` or `dryRun`.' }),
    jurisdiction: key.jurisdiction('Where the engine runs; checked against the SovereigntyPolicy.'),
    bearerTokenFile: Type.String({
      default: '',
      file: 'fails closed',
      description: 'API token file, re-read while the gateway runs.',
    }),
  }),
})
