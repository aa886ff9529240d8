import { rfc3339 } from '@plat/core'
import { type Static, Type } from 'typebox'
import type { FleetLedger } from './fleet.ts'

/** A ledger of the fleet, of one replica. */
export const replicaSchema = Type.Object({
  replica: Type.String({ description: 'Host name of the gateway.' }),
  ledgerId: Type.String(),
  isHere: Type.Boolean({
    description: 'The ledger of the gateway that responds; those of others are read from copies.',
  }),
  seq: Type.Integer({ minimum: 0, description: 'Its last record: durable here, or copied.' }),
  hash: Type.String(),
  copiedAt: Type.Union([Type.String(), Type.Null()], { description: 'When records were copied last.' }),
  problem: Type.Union([Type.String(), Type.Null()], { description: 'What is wrong with the copy.' }),
})

export function replicaView(
  { ledgerId, replica, isHere, seq, hash, copiedAt }: FleetLedger,
  problemOf: (ledgerId: string) => string | null,
): Static<typeof replicaSchema> {
  const copied = copiedAt === null ? null : rfc3339(copiedAt)
  return { replica, ledgerId, isHere, seq, hash, copiedAt: copied, problem: problemOf(ledgerId) }
}
