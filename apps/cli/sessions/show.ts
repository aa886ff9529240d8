import { decisionRecords, decisionRows } from '../shared/decision.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import { type Output, plain, type WideFormat } from '../shared/output.ts'
import { printData, printObject } from '../shared/print.ts'

/**
 * `plat show`: one call by its id, which refusals have as `decisionId`.
 * @throws CommandError if the ledger has no such call
 */
export async function showCall(
  { dir, id, output: format }: GatewayOptions<WideFormat> & { readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(dir)
  const records = await decisionRecords({ env }, id)
  if (format === 'name') output.out(plain(id))
  else if (format === 'json' || format === 'yaml')
    printData(
      output,
      format,
      records.map(({ text: _, ...line }) => line),
    )
  else printObject(output, 'table', decisionRows(records, format === 'wide'))
  return 0
}
