import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

const KEY =
  'public keys (PEM, JWK or JWK set) of the checkpoints; with an ML-DSA key only hybrid ones count. ' +
  'The key of HMAC checkpoints is PLAT_AUDIT_HMAC_KEY'

/** How `plat audit` is written. */
export function addAudit(plat: Command): void {
  const audit = plat.command('audit').description('the tamper-evident ledger')
  audit
    .command('verify')
    .argument('[path]', 'the ledger file (default: that of the running plat)')
    .summary('prove that no record was changed, removed or added')
    .description(
      'Reads the whole ledger and checks every hash. Exit codes:\n' +
        '  0  valid\n' +
        '  2  a file cannot be read, or a flag is wrong\n' +
        '  3  broken: a record was changed, removed, added or moved\n' +
        '  4  torn, or a tail that no signed checkpoint covers\n' +
        '  5  forked: two histories\n' +
        '  6  truncated below its head or a checkpoint\n' +
        'Uses <path>.head, <path>.checkpoints and the keys in <path>.jwks unless --checkpoint and --key are given.',
    )
    .addOption(dir())
    .option('--key <file>', KEY)
    .option('--checkpoint <file>', 'checkpoints kept elsewhere, which the ledger must still contain')
    .option('--log-key <file>', 'public keys of the transparency log that checkpoints are anchored in')
    .option('--strict', 'also parse every record, check its canonical form and build the tree')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditVerify }, { ledgerPath }] = await Promise.all([
        import('./verify.ts'),
        import('../shared/ledger-path.ts'),
      ])
      await exitWith(
        auditVerify({ ...options, path: await ledgerPath(path, options.dir), output: options.output }, terminal),
      )
    })
  audit
    .command('tail')
    .argument('[path]', 'the ledger file (default: that of the running plat)')
    .summary('show the latest records, one line each')
    .addOption(dir())
    .option('-f, --follow', 'print new records as they are written')
    .option('-n, --lines <count>', 'number of records to start with', '20')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditTail }, { ledgerPath }] = await Promise.all([
        import('./tail.ts'),
        import('../shared/ledger-path.ts'),
      ])
      await exitWith(auditTail({ ...options, path: await ledgerPath(path, options.dir) }, terminal))
    })
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
    .argument('[path]', 'the ledger file (default: that of the running plat)')
    .summary('print a record with its proof of inclusion in the ledger')
    .description(
      'Prints a record, a signed checkpoint that covers it, and the hashes between them. With the public key it can be\n' +
        'verified without the ledger: plat audit verify-proof.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (seq: string, path: string | undefined, options) => {
      const [{ auditProof }, { ledgerPath }] = await Promise.all([
        import('./proof.ts'),
        import('../shared/ledger-path.ts'),
      ])
      await exitWith(auditProof({ ...options, seq, path: await ledgerPath(path, options.dir) }, terminal))
    })
  audit
    .command('verify-proof')
    .argument('<file>', 'what proof printed')
    .summary('check a record and its proof, without the ledger')
    .description('Exit codes: 0 proven, 2 a file cannot be read, 3 forged, 4 not signed by the given key.')
    .option('--key <file>', KEY)
    .addOption(format())
    .action(async (file: string, options) => {
      const { auditVerifyProof } = await import('./proof.ts')
      await exitWith(auditVerifyProof({ ...options, file }, terminal))
    })
}
