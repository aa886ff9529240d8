import { createTxnTokens } from '../authn/txn-tokens/index.ts'
import { createCaptures } from '../content/captures/index.ts'
import { createEraser } from '../content/dlp/index.ts'
import { createGuards } from '../content/guards/index.ts'
import type { Callers } from './callers.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

export type Content = Awaited<ReturnType<typeof startContent>>

/** Guards and captures of what calls carry, and the transaction tokens of callers. */
export async function startContent(shared: Shared, { authenticator, ledgers }: Callers, { taint }: Targets) {
  const { config, keep } = shared
  const labelsOf: typeof taint.labelsOf = (caller) => taint.labelsOf(caller)
  const transactions = await createTxnTokens({
    ...shared,
    subjectOf: (caller) => authenticator.subject(caller),
    labelsOf,
  })
  const redact = createEraser(config.dlpProfiles, config.captureArgs.dlpProfile)
  const captures = keep(await createCaptures({ ...shared, redact }))
  const guards = keep(
    createGuards({
      ...shared,
      taint: (identity, labels) => taint.add(identity, labels),
      labelsOf,
      ledgers,
    }),
  )
  return { transactions, captures, guards }
}
