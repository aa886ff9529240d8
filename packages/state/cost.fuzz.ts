import { costTarget, type Row } from '../../test/fuzz/cost.ts'
import { json } from '../../test/fuzz/families.ts'
import { readJournalLine } from './journal-line.ts'

const KIB = 1024
const MIB = 1024 * KIB
const rows: readonly Row[] = [{ parser: 'journal lines', limit: 16 * MIB, families: json, run: readJournalLine }]

export const target = costTarget('cost/state', rows)
