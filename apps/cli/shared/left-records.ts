import { type ArchivedRecords, type LedgerMoment, leftRecords } from '@plat/ledger'
import { adminPages } from './admin-api.ts'
import type { LedgerSource } from './ledger-source.ts'
import { isLedgerRecord } from './record.ts'

/**
 * Returns one line about the records of a range whose segments left, which a search passes over; null when there are none. Of a gateway only those before
 * its first record are known.
 */
export async function leftText(
  source: LedgerSource,
  { from = 0, to = null }: { readonly from?: LedgerMoment | undefined; readonly to?: LedgerMoment | null | undefined },
): Promise<string | null> {
  if ('path' in source) {
    const left = await leftRecords(source.path, { from, to })
    return left.length === 0
      ? null
      : `${left.map(textOf).join('; ')}: to read them, copy the files back beside the ledger`
  }
  if (typeof from !== 'number') return null
  for await (const { seq } of adminPages(source.env, `/v1/audit/records?from=${from}&limit=1`, isLedgerRecord)) {
    if (seq <= from) return null
    return `records ${from} to ${seq - 1} are not at the gateway, or not of your namespace: GET /v1/audit/segments lists what left`
  }
  return null
}

function textOf({ first, last, archive }: ArchivedRecords): string {
  const where = archive === null ? 'were deleted' : `are archived at ${archive}`
  return `records ${first} to ${last} ${where} and were not searched`
}
