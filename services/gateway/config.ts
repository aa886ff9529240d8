import { readFileSync } from 'node:fs'
import {
  type CheckedConfig,
  type CheckOptions,
  type ConfigBlock,
  checkConfig,
  isListenAddress,
  joinSchema,
  type Node,
  type Problem,
} from '@plat/config'
import { isObject } from '@plat/tokens'
import type { Static } from 'typebox'
import { Check } from 'typebox/value'
import { adminBlock, adminOidcBlock } from './admin/config.ts'
import { type A2aConfig, a2aBlock } from './features/a2a/config.ts'
import { type ActivityConfig, activityBlock } from './features/activity/config.ts'
import {
  type ApprovalQuorumConfig,
  approvalPreviewBlock,
  approvalQuorumBlock,
  approvalsBlock,
} from './features/approvals/config.ts'
import { auditBlock } from './features/audit/config.ts'
import { auditCollectorBlock } from './features/audit-collector/config.ts'
import { auditSinksBlock } from './features/audit-sinks/config.ts'
import { budgetsBlock } from './features/budgets/config.ts'
import { captureArgsBlock } from './features/captures/config.ts'
import { type CibaConfig, cibaBlock } from './features/ciba/config.ts'
import { type ConfigBundleConfig, configBundleBlock } from './features/config-bundle/config.ts'
import { type ConfigSyncConfig, configSyncBlock } from './features/config-sync/config.ts'
import { dlpBlock, dlpProfilesBlock } from './features/dlp/config.ts'
import { egressBlock } from './features/egress/config.ts'
import { energyBlock } from './features/energy/config.ts'
import { evidenceBlock } from './features/evidence/config.ts'
import { type ExecConfig, execBlock } from './features/exec/config.ts'
import { guardsBlock } from './features/guards/config.ts'
import { dpopBlock, identityBlock } from './features/identity/config.ts'
import { infraBlock } from './features/infra/config.ts'
import type { InfraConfig } from './features/infra/index.ts'
import { k8sOpsBlock } from './features/k8s-ops/config.ts'
import type { K8sOpsConfig } from './features/k8s-ops/index.ts'
import { licenseBlock } from './features/license/config.ts'
import { listenersBlock, tlsBlock } from './features/listeners/config.ts'
import { memoryBlock } from './features/memory/config.ts'
import { cloudCredentialsBlock, modelRoutingBlock, modelsBlock } from './features/models/config.ts'
import { notificationsBlock } from './features/notifications/config.ts'
import { offlineBlock } from './features/offline/config.ts'
import { type OtelConfig, otelBlock } from './features/otel/config.ts'
import { pinsBlock } from './features/pins/config.ts'
import { policyBlock, regoBlock } from './features/policy/config.ts'
import { postureBlock } from './features/posture/config.ts'
import { residencyBlock } from './features/residency/config.ts'
import { resourceAPIBlock } from './features/resource-api/config.ts'
import { revocationMirrorBlock, revocationsBlock } from './features/revocations/config.ts'
import { sandboxUsageBlock } from './features/sandbox-usage/config.ts'
import { serversBlock } from './features/servers/config.ts'
import { type SessionsConfig, sessionsBlock } from './features/sessions/config.ts'
import { type StateBackendConfig, stateBackendBlock } from './features/state-backend/config.ts'
import { taintBlock } from './features/taint/config.ts'
import { type TokenVaultConfig, tokenVaultBlock } from './features/token-vault/config.ts'
import { transparencyLogBlock } from './features/transparency/config.ts'
import { type TxnTokensConfig, txnTokensBlock } from './features/txn-tokens/config.ts'
import { webBlock } from './features/web/config.ts'
import type { WebConfig } from './features/web/index.ts'
import { unbuiltBlocks } from './unbuilt.ts'

/** The tables of gateway.json (document 3), in the order of the reference. */
export const gatewayBlocks: readonly ConfigBlock[] = [
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
  cloudCredentialsBlock,
  auditBlock,
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
  postureBlock,
  tokenVaultBlock,
  sessionsBlock,
  memoryBlock,
  activityBlock,
  webBlock,
  k8sOpsBlock,
  infraBlock,
  egressBlock,
  execBlock,
  a2aBlock,
  offlineBlock,
  auditCollectorBlock,
  evidenceBlock,
  txnTokensBlock,
  configBundleBlock,
  configSyncBlock,
  otelBlock,
  stateBackendBlock,
  licenseBlock,
  resourceAPIBlock,
  ...unbuiltBlocks,
]

/** What the gateway reads: every built key, defaults filled in. Unbuilt keys stand at their defaults. */
export type GatewayConfig = Readonly<
  Static<typeof listenersBlock.schema> &
    Static<typeof policyBlock.schema> &
    Static<typeof residencyBlock.schema> &
    Static<typeof serversBlock.schema> &
    Static<typeof pinsBlock.schema> &
    Static<typeof modelsBlock.schema> &
    Static<typeof auditBlock.schema> &
    Static<typeof auditSinksBlock.schema> &
    Static<typeof budgetsBlock.schema> &
    Static<typeof approvalsBlock.schema> &
    Static<typeof notificationsBlock.schema> &
    Static<typeof dlpProfilesBlock.schema> &
    Static<typeof taintBlock.schema> &
    Static<typeof guardsBlock.schema> &
    Static<typeof licenseBlock.schema> &
    Static<typeof memoryBlock.schema> &
    Static<typeof revocationsBlock.schema> & {
      tls: Readonly<Static<typeof tlsBlock.schema>>
      revocationMirror: Readonly<Static<typeof revocationMirrorBlock.schema>>
      transparencyLog: Readonly<Static<typeof transparencyLogBlock.schema>>
      identity: Readonly<Static<typeof identityBlock.schema>>
      dpop: Readonly<Static<typeof dpopBlock.schema>>
      dlp: Readonly<Static<typeof dlpBlock.schema>>
      captureArgs: Readonly<Static<typeof captureArgsBlock.schema>>
      approvalPreview: Readonly<Static<typeof approvalPreviewBlock.schema>>
      approvalQuorum: ApprovalQuorumConfig
      ciba: CibaConfig
      adminAuth: Readonly<Static<typeof adminBlock.schema> & { oidc: Static<typeof adminOidcBlock.schema> }>
      modelRouting: Readonly<Static<typeof modelRoutingBlock.schema>>
      cloudCredentials: Readonly<Static<typeof cloudCredentialsBlock.schema>>
      policy: { readonly rego: Readonly<Static<typeof regoBlock.schema>> }
      energy: Readonly<Static<typeof energyBlock.schema>>
      sandboxUsage: Readonly<Static<typeof sandboxUsageBlock.schema>>
      posture: Readonly<Static<typeof postureBlock.schema>>
      stateBackend: StateBackendConfig
      offline: Readonly<Static<typeof offlineBlock.schema>>
      evidence: Readonly<Static<typeof evidenceBlock.schema>>
      auditCollector: Readonly<Static<typeof auditCollectorBlock.schema>>
      tokenVault: TokenVaultConfig
      txnTokens: TxnTokensConfig
      configBundle: ConfigBundleConfig
      configSync: ConfigSyncConfig
      otel: OtelConfig
      sessions: SessionsConfig
      activity: ActivityConfig
      web: WebConfig
      k8sOps: K8sOpsConfig
      infra: InfraConfig
      egress: Readonly<Static<typeof egressBlock.schema>>
      exec: ExecConfig
      a2a: A2aConfig
      resourceAPI: Readonly<Static<typeof resourceAPIBlock.schema>>
    }
>

/** Where the file is when neither the flag nor the environment says (document 3, loading rule 1). */
export const DEFAULT_CONFIG_PATH = '/etc/plat/gateway.json'

export interface LoadOptions {
  env: NodeJS.ProcessEnv
  /** Values of the flags `-config` and `-listen`; empty when not given. */
  flags: { config: string; listen: string }
}

export type LoadedConfig =
  | { ok: true; path: string; config: GatewayConfig; warnings: readonly Problem[] }
  /** Only errors: what is told is what has to be mended. */
  | { ok: false; path: string; problems: readonly Problem[] }

/** Loads gateway.json by the loading rules of document 3; never throws for what the file says. */
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
    // Strict: a byte that is no UTF-8 must not pass as a replacement character.
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
