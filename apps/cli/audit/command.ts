import type { Command } from 'commander'
import { EXIT, exitCodeRows, exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

const KEY =
  'public keys (PEM, JWK or JWK set) of the checkpoints; with an ML-DSA key only hybrid ones count. ' +
  'The key of HMAC checkpoints is PLAT_AUDIT_HMAC_KEY'

const FURTHER_CODES = Object.entries(exitCodeRows)
  .filter(([code]) => Number(code) > EXIT.found)
  .map(([code, meaning]) => `${code}: ${meaning}.`)
  .join(' ')

/** How `plat audit` is written. */
export function addAudit(plat: Command): void {
  const audit = plat.command('audit').description('the tamper-evident ledger')
  audit
    .command('verify')
    .argument('[path]', 'the ledger file (default: that of the running plat or of the gateway)')
    .summary('prove that no record was changed, removed or added')
    .description(
      'Reads the whole ledger on all cores and checks every hash.\n' +
        `${exitCodesLine(findings['audit verify'])} ${FURTHER_CODES}\n` +
        'Uses <path>.head, <path>.checkpoints and the keys in <path>.jwks unless --checkpoint and --key are given. The ledger of a gateway ' +
        'elsewhere is copied first, into a temporary folder.',
    )
    .addOption(dir())
    .option('--key <file>', KEY)
    .option('--checkpoint <file>', 'checkpoints kept elsewhere, which the ledger must still contain')
    .option('--log-key <file>', 'public keys of the transparency log that checkpoints are anchored in')
    .option('--strict', 'also parse every record, check its canonical form and build the tree')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditVerify }, { findLedger }] = await Promise.all([
        import('./verify.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditVerify({ ...options, ...(await findLedger(path, options.dir)) }, terminal))
    })
  audit
    .command('tail')
    .argument('[path]', 'the ledger file (default: that of the running plat or of the gateway)')
    .summary('show the latest records, one line each')
    .addOption(dir())
    .option('-f, --follow', 'print new records as they are written')
    .option('-n, --lines <count>', 'number of records to start with', '20')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditTail }, { findLedger }] = await Promise.all([
        import('./tail.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditTail({ ...options, ...(await findLedger(path, options.dir)) }, terminal))
    })
  addShow(audit)
  addProof(audit)
  addArguments(audit)
  audit
    .command('repair')
    .argument('<path>', 'the ledger file; the gateway must not be running')
    .summary('move damage aside and record it, so that the gateway can start')
    .action(async (path: string) => {
      const { auditRepair } = await import('./repair.ts')
      await exitWith(auditRepair({ path }, terminal))
    })
}

function addShow(audit: Command): void {
  audit
    .command('show')
    .argument('<decisionId>', 'the decisionId of a refusal, or the ID of a call')
    .summary('show a decision: its policy and rule, its records, and their proof')
    .description(
      'Shows a decision with policy and rule, and whether a signed checkpoint covers its last record. With -o json it prints the records and the ' +
        'receipt, which plat audit verify-proof checks without the ledger.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (id: string, options) => {
      const { auditShow } = await import('./show.ts')
      await exitWith(auditShow({ ...options, id }, terminal))
    })
}

function addArguments(audit: Command): void {
  audit
    .command('arguments')
    .argument('<file>', 'a file of captureArgs.dir: <namespace>/<xx>/<argsSha256>.cap')
    .summary('show the captured arguments of a call')
    .requiredOption('--key <uri>', 'the key that captureArgs.key names')
    .addOption(format())
    .action(async (file: string, options) => {
      const { auditArguments } = await import('./arguments.ts')
      await exitWith(auditArguments({ file, key: options.key, output: options.output }, terminal))
    })
}

function addProof(audit: Command): void {
  audit
    .command('proof')
    .argument('<seq>', 'the number of the record, as tail shows it')
    .argument('[path]', 'the ledger file (default: that of the running plat or of the gateway)')
    .summary('print a record with its proof of inclusion in the ledger')
    .description(
      'Prints a record, a signed checkpoint that covers it, and the hashes between them. With the public key it can be\n' +
        'verified without the ledger: plat audit verify-proof.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (seq: string, path: string | undefined, options) => {
      const [{ auditProof }, { findLedger }] = await Promise.all([
        import('./proof.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditProof({ ...options, seq, ...(await findLedger(path, options.dir)) }, terminal))
    })
  audit
    .command('verify-proof')
    .argument('<file>', 'what proof printed')
    .summary('check a record and its proof, without the ledger')
    .description(`${exitCodesLine(findings['audit verify-proof'])} ${FURTHER_CODES}`)
    .option('--key <file>', KEY)
    .addOption(format())
    .action(async (file: string, options) => {
      const { auditVerifyProof } = await import('./proof.ts')
      await exitWith(auditVerifyProof({ ...options, file }, terminal))
    })
}
