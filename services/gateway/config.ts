import { readFileSync } from 'node:fs'
import {
  type CheckedConfig,
  type CheckOptions,
  type ConfigBlock,
  type ConfigOf,
  checkConfig,
  isListenAddress,
  joinSchema,
  type Node,
  type Problem,
} from '@plat/config'
import { isObject } from '@plat/core'
import { Check } from 'typebox/value'
import { adminBlock, adminOidcBlock, adminStepUpBlock } from './admin/config.ts'
import { cibaBlock } from './authn/ciba/config.ts'
import { dpopBlock, identityBlock } from './authn/identity/config.ts'
import { tokenVaultBlock } from './authn/token-vault/config.ts'
import { txnTokensBlock } from './authn/txn-tokens/config.ts'
import { k8sOpsBlock } from './builtin/k8s-ops/config.ts'
import { memoryBlock } from './builtin/memory/config.ts'
import { webBlock } from './builtin/web/config.ts'
import { captureArgsBlock } from './content/captures/config.ts'
import { dlpBlock, dlpProfilesBlock } from './content/dlp/config.ts'
import { guardsBlock } from './content/guards/config.ts'
import { approvalPreviewBlock, approvalQuorumBlock, approvalsBlock } from './decide/approvals/config.ts'
import { budgetsBlock } from './decide/budgets/config.ts'
import { pinsBlock } from './decide/pins/config.ts'
import { policyBlock, regoBlock } from './decide/policy/config.ts'
import { residencyBlock } from './decide/residency/config.ts'
import { revocationMirrorBlock, revocationsBlock } from './decide/revocations/config.ts'
import { taintBlock } from './decide/taint/config.ts'
import { auditBlock } from './evidence/audit/config.ts'
import { auditCollectorBlock } from './evidence/audit-collector/config.ts'
import { auditSinksBlock } from './evidence/audit-sinks/config.ts'
import { clientAuditBlock } from './evidence/client-audit/config.ts'
import { energyBlock } from './evidence/energy/config.ts'
import { evidenceBlock } from './evidence/objects/config.ts'
import { offlineBlock } from './evidence/offline/config.ts'
import { otelBlock } from './evidence/otel/config.ts'
import { compressionBlock, retentionBlock } from './evidence/retention/config.ts'
import { sbxdBlock } from './evidence/sbxd/config.ts'
import { transparencyLogBlock } from './evidence/transparency/config.ts'
import { activityBlock } from './operate/activity/config.ts'
import { configBundleBlock } from './operate/config-bundle/config.ts'
import { configSyncBlock } from './operate/config-sync/config.ts'
import { consoleBlock } from './operate/console/config.ts'
import { licenseBlock } from './operate/license/config.ts'
import { listenersBlock, tlsBlock } from './operate/listeners/config.ts'
import { liveViewBlock } from './operate/live-view/config.ts'
import { notificationsBlock } from './operate/notifications/config.ts'
import { pinReportsBlock } from './operate/pin-reports/config.ts'
import { postureBlock } from './operate/posture/config.ts'
import { resourceAPIBlock } from './operate/resource-api/config.ts'
import { sandboxUsageBlock } from './operate/sandbox-usage/config.ts'
import { sessionsBlock } from './operate/sessions/config.ts'
import { stateBackendBlock } from './operate/state-backend/config.ts'
import { tenantsBlock } from './operate/tenants/config.ts'
import { a2aBlock } from './targets/a2a/config.ts'
import { ctxengineBlock } from './targets/ctxengine/config.ts'
import { egressBlock } from './targets/egress/config.ts'
import { execBlock } from './targets/exec/config.ts'
import { infraBlock } from './targets/infra/config.ts'
import { cloudCredentialsBlock, modelRoutingBlock, modelsBlock, modelUploadsBlock } from './targets/models/config.ts'
import { serversBlock } from './targets/servers/config.ts'

/** Every block of gateway.json (docs/spec/gateway.md), in the order of the reference. */
const blocks = [
  listenersBlock,
  tlsBlock,
  identityBlock,
  dpopBlock,
  policyBlock,
  regoBlock,
  residencyBlock,
  serversBlock,
  pinsBlock,
  modelsBlock,
  modelRoutingBlock,
  modelUploadsBlock,
  cloudCredentialsBlock,
  auditBlock,
  compressionBlock,
  retentionBlock,
  auditSinksBlock,
  transparencyLogBlock,
  revocationsBlock,
  revocationMirrorBlock,
  budgetsBlock,
  energyBlock,
  sandboxUsageBlock,
  approvalsBlock,
  approvalPreviewBlock,
  approvalQuorumBlock,
  notificationsBlock,
  cibaBlock,
  dlpProfilesBlock,
  dlpBlock,
  taintBlock,
  guardsBlock,
  captureArgsBlock,
  adminBlock,
  adminOidcBlock,
  adminStepUpBlock,
  consoleBlock,
  postureBlock,
  tokenVaultBlock,
  sessionsBlock,
  memoryBlock,
  activityBlock,
  pinReportsBlock,
  webBlock,
  k8sOpsBlock,
  infraBlock,
  egressBlock,
  execBlock,
  liveViewBlock,
  a2aBlock,
  offlineBlock,
  auditCollectorBlock,
  ctxengineBlock,
  clientAuditBlock,
  sbxdBlock,
  evidenceBlock,
  txnTokensBlock,
  configBundleBlock,
  configSyncBlock,
  otelBlock,
  stateBackendBlock,
  tenantsBlock,
  licenseBlock,
  resourceAPIBlock,
] as const

export const gatewayBlocks: readonly ConfigBlock[] = blocks

/** The configuration with defaults. */
export type GatewayConfig = Readonly<ConfigOf<typeof blocks>>

/** Where the file is when neither the flag nor the environment says (docs/spec/gateway.md, loading rule 1). */
export const DEFAULT_CONFIG_PATH = '/etc/plat/gateway.json'

export interface LoadOptions {
  env: NodeJS.ProcessEnv
  /** Values of the flags `-config` and `-listen`; empty when not given. */
  flags: { config: string; listen: string }
}

export type LoadedConfig =
  | { ok: true; path: string; config: GatewayConfig; warnings: readonly Problem[] }
  /** Returns only errors, each of which must be fixed. */
  | { ok: false; path: string; problems: readonly Problem[] }

/** Loads gateway.json by the loading rules of docs/spec/gateway.md; never throws for what the file says. */
export function loadGatewayConfig({ env, flags }: LoadOptions): LoadedConfig {
  const path = flags.config || env.PLAT_GATEWAY_CONFIG || DEFAULT_CONFIG_PATH
  const read = readConfigFile(path)
  if (read.kind === 'problem') {
    const message = `${read.problem.message}; name one with -config or PLAT_GATEWAY_CONFIG`
    return { ok: false, path, problems: [{ ...read.problem, message }] }
  }
  const { config, problems } = checkGatewayConfig(read.text)
  const errors = problems.filter((problem) => problem.severity === 'error')
  if (flags.listen !== '' && !isListenAddress(flags.listen)) {
    const message = `must be an address such as :8080 or 127.0.0.1:8080, got ${JSON.stringify(flags.listen)}`
    errors.push({ path: 'flag -listen', message, severity: 'error' })
  }
  if (errors.length > 0) return { ok: false, path, problems: errors }
  const typed = typedConfig(config)
  return {
    ok: true,
    path,
    config: Object.freeze(flags.listen === '' ? typed : { ...typed, listen: flags.listen }),
    warnings: problems,
  }
}

/** Checks the text of a gateway.json with every rule; the command line's validator uses the same. */
export function checkGatewayConfig(text: string, options?: CheckOptions): CheckedConfig {
  return checkConfig(text, gatewayBlocks, options)
}

/** The whole file as one schema, for the reference and for editors. */
export function gatewaySchema(): Node {
  return joinSchema(gatewayBlocks)
}

/** The text of a configuration file, or the one problem that says why there is none. */
export function readConfigFile(path: string): { kind: 'text'; text: string } | { kind: 'problem'; problem: Problem } {
  try {
    // Strict: a byte that is not UTF-8 must not pass as a replacement character.
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path)) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    const why = code === 'ENOENT' ? 'no such file' : code
    return { kind: 'problem', problem: { path: '', message: `cannot read ${path}: ${why}`, severity: 'error' } }
  }
}

/** Gives a checked configuration without errors its type; throws when it is none that the tables describe. */
export function typedConfig(config: Record<string, unknown>): GatewayConfig {
  if (isGatewayConfig(config)) return config
  throw new Error('the configuration was not checked by the tables of gateway.json')
}

function isGatewayConfig(config: Record<string, unknown>): config is GatewayConfig {
  return gatewayBlocks.every(({ path, schema }) => Check(schema, path === '' ? config : valueAt(config, path)))
}

function valueAt(config: unknown, path: string): unknown {
  return path.split('.').reduce((value, name) => (isObject(value) ? value[name] : undefined), config)
}
