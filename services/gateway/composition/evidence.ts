import { createCloudCredentials } from '@plat/cloud'
import { followLicense, licenseMeter } from '@plat/license'
import type { AuditLedger } from '../evidence/audit/index.ts'
import { createAuditCollector } from '../evidence/audit-collector/index.ts'
import { createArchive } from '../evidence/audit-sinks/archive/create.ts'
import { startAuditSinks } from '../evidence/audit-sinks/index.ts'
import { createClientAudit } from '../evidence/client-audit/index.ts'
import { createEvidence, createEvidenceRoutes } from '../evidence/objects/index.ts'
import { createOffline } from '../evidence/offline/index.ts'
import { createHoldRoutes, createRetention } from '../evidence/retention/index.ts'
import { createSbxd } from '../evidence/sbxd/index.ts'
import { createAnchorRoutes, createTransparency } from '../evidence/transparency/index.ts'
import { createConfigBundle } from '../operate/config-bundle/index.ts'
import { createLicenseRoutes } from '../operate/license/routes.ts'
import { problemsOfBundle } from './bundled.ts'
import type { Callers } from './callers.ts'
import type { Shared } from './shared.ts'

export type Evidence = Awaited<ReturnType<typeof startEvidence>>

/** Streams the ledgers to their sinks. They start first and close last: records of the shutdown are delivered as well. */
export async function startSinks(shared: Shared) {
  const { config, keep } = shared
  const clouds = keep(createCloudCredentials(shared))
  const byTenant = await startForLedgers(shared, ({ tenant, path: auditPath, ledger }) =>
    startAuditSinks({
      ...shared,
      config: { auditPath, auditSinks: config.auditSinks.filter((sink) => sink.tenant === tenant) },
      head: () => ledger.head(),
      clouds,
    }),
  )
  return {
    delivered: (tenant: string) => byTenant.get(tenant)?.delivered() ?? -1,
    states: () => [...byTenant.values()].flatMap((sinks) => sinks.states()),
    archive: createArchive(config.auditRetention, { ...shared, clouds }),
  }
}

export type Sinks = Awaited<ReturnType<typeof startSinks>>

/** Starts what each ledger has, also for those of tenants that are added later, and closes it. */
async function startForLedgers<T extends { close(): Promise<void> }>(
  { audit, tenancy, keep }: Pick<Shared, 'audit' | 'tenancy' | 'keep'>,
  start: (ledger: AuditLedger) => Promise<T>,
): Promise<ReadonlyMap<string, T>> {
  const byTenant = new Map<string, T>()
  keep({
    async close() {
      for (const one of [...byTenant.values()].reverse()) await one.close()
    },
  })
  const add = async (ledger: AuditLedger) => void byTenant.set(ledger.tenant, await start(ledger))
  for (const ledger of audit.all()) await add(ledger)
  tenancy.onAdded(async (tenant) => {
    const ledger = audit.of(tenant)
    if (ledger !== null && !byTenant.has(tenant)) await add(ledger)
  })
  return byTenant
}

/** Forwards, collects and anchors the ledger; reads configuration bundles and the licence. */
export async function startEvidence(shared: Shared, { ledgers }: Callers, { delivered, archive }: Sinks) {
  const { config, metrics, audit, tenancy, log, keep } = shared
  const { signer, ledgerId } = audit
  const offline = keep(await createOffline({ ...shared, ledgers, ledgerId, signer }))
  const collector = keep(await createAuditCollector({ ...shared, ledgers, signer }))
  keep(await createClientAudit({ ...shared, ledgers }))
  const sbxd = keep(await createSbxd({ ...shared, ledgers, ledgerId }))
  // An edge has no tenants, so that its collector is of the fleet's ledger.
  const acknowledged = (tenant: string) => (tenant === '' ? offline.acknowledged() : Number.POSITIVE_INFINITY)
  const keeping = await startForLedgers(shared, (one) =>
    startKeeping(shared, { ...one, ledger: ledgers.of(one.tenant) }, { delivered, archive, acknowledged }),
  )
  const keepingOf = (tenant: string) => keeping.get(tenant) ?? null
  const problemsOf = problemsOfBundle(config)
  const bundles = keep(await createConfigBundle({ ...shared, problemsOf, ledger: ledgers.of('') }))
  const license = keep(await followLicense({ ...shared, path: config.licenseFile, onStanding: licenseMeter(metrics) }))
  return {
    offline,
    collector,
    sbxd,
    anchors: { routes: createAnchorRoutes((tenant) => keepingOf(tenant)?.anchors.anchorer ?? null) },
    evidence: {
      routes: createEvidenceRoutes({ of: (tenant) => keepingOf(tenant)?.evidence ?? null, tenancy, ledgers, log }),
    },
    retention: { routes: createHoldRoutes({ holdsOf: (tenant) => keepingOf(tenant)?.retention.holds ?? null, log }) },
    bundles,
    license: { routes: createLicenseRoutes(() => license.standing()) },
  }
}

interface Keeping extends Pick<Sinks, 'delivered' | 'archive'> {
  /** The last record that a collector has. */
  readonly acknowledged: (tenant: string) => number
}

/** Anchors, evidence objects and retention of one ledger. */
async function startKeeping(
  shared: Shared,
  { tenant, path: auditPath, ledger, checkpoints, segments, shipper }: AuditLedger,
  { delivered, archive, acknowledged }: Keeping,
) {
  // The objects of a tenant are beside its ledger.
  const evidenceDir = tenant === '' ? shared.config.evidence.dir : ''
  const config = { ...shared.config, auditPath, evidence: { ...shared.config.evidence, dir: evidenceDir } }
  const own = { ...shared, config, tenant, ledger, checkpoints }
  const anchors = await createTransparency(own)
  const evidence = createEvidence(own)
  const received = {
    sinks: () => delivered(tenant),
    collector: () => acknowledged(tenant),
    anchors: () => anchors.anchored(),
    copy: () => shipper?.shipped ?? Number.POSITIVE_INFINITY,
  }
  const retention = createRetention({ ...own, ...segments, archive, received, evidence: evidence.needs })
  return {
    ...{ anchors, evidence, retention },
    async close() {
      await retention.close()
      await anchors.close()
    },
  }
}
