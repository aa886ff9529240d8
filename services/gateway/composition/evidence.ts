import { createCloudCredentials } from '@plat/cloud'
import { followLicense, licenseMeter } from '@plat/license'
import { createAuditCollector } from '../evidence/audit-collector/index.ts'
import { createArchive } from '../evidence/audit-sinks/archive/create.ts'
import { startAuditSinks } from '../evidence/audit-sinks/index.ts'
import { createClientAudit } from '../evidence/client-audit/index.ts'
import { createEvidence } from '../evidence/objects/index.ts'
import { createOffline } from '../evidence/offline/index.ts'
import { createRetention } from '../evidence/retention/index.ts'
import { createSbxd } from '../evidence/sbxd/index.ts'
import { createTransparency } from '../evidence/transparency/index.ts'
import { createConfigBundle } from '../operate/config-bundle/index.ts'
import { createLicenseRoutes } from '../operate/license/routes.ts'
import { problemsOfBundle } from './bundled.ts'
import type { Callers } from './callers.ts'
import type { Shared } from './shared.ts'

export type Evidence = Awaited<ReturnType<typeof startEvidence>>

/** Streams the ledger to the sinks. They start first and close last: records of the shutdown are delivered as well. */
export async function startSinks(shared: Shared) {
  const { audit, config, keep } = shared
  const head = () => audit.ledgers.of('').head()
  const clouds = keep(createCloudCredentials(shared))
  const sinks = keep(await startAuditSinks({ ...shared, head, clouds }))
  return {
    delivered: () => sinks.delivered(),
    states: () => sinks.states(),
    archive: createArchive(config.auditRetention, { ...shared, clouds }),
  }
}

export type Sinks = Awaited<ReturnType<typeof startSinks>>

/** Forwards, collects and anchors the ledger; reads configuration bundles and the licence. */
export async function startEvidence(shared: Shared, { ledgers }: Callers, { delivered, archive }: Sinks) {
  const { config, metrics, audit, keep } = shared
  const { signer, ledgerId } = audit
  const offline = keep(await createOffline({ ...shared, ledgers, ledgerId, signer }))
  const collector = keep(await createAuditCollector({ ...shared, ledgers, signer }))
  keep(await createClientAudit({ ...shared, ledgers }))
  const sbxd = keep(await createSbxd({ ...shared, ledgers, ledgerId }))
  const { checkpoints, segments } = audit
  const anchors = keep(await createTransparency({ ...shared, ledgers, checkpoints }))
  const evidence = createEvidence({ ...shared, checkpoints, ledgers })
  const received = { sinks: delivered, collector: () => offline.acknowledged(), anchors: () => anchors.anchored() }
  const parts = { archive, received, checkpoints, evidence: evidence.needs, ledger: ledgers.of('') }
  const retention = keep(createRetention({ ...shared, ...segments, ...parts }))
  const problemsOf = problemsOfBundle(config)
  const bundles = keep(await createConfigBundle({ ...shared, problemsOf, ledger: ledgers.of('') }))
  const license = keep(await followLicense({ ...shared, path: config.licenseFile, onStanding: licenseMeter(metrics) }))
  return {
    offline,
    collector,
    sbxd,
    anchors,
    evidence,
    retention,
    bundles,
    license: { routes: createLicenseRoutes(() => license.standing()) },
  }
}
