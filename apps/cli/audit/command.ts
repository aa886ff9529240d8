import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

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
        '  6  truncated below a checkpoint',
    )
    .addOption(dir())
    .option('--key <file>', 'public key (PEM or JWK) of the checkpoints')
    .option('--checkpoint <file>', 'a checkpoint kept elsewhere, which the ledger must still contain')
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
    .option('-f, --follow', 'go on as records come in')
    .option('-n, --lines <count>', 'how many records to begin with', '20')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditTail }, { ledgerPath }] = await Promise.all([
        import('./tail.ts'),
        import('../shared/ledger-path.ts'),
      ])
      await exitWith(auditTail({ ...options, path: await ledgerPath(path, options.dir) }, terminal))
    })
  audit
    .command('repair')
    .argument('<path>', 'the ledger file; the gateway must not be running')
    .summary('set damage aside, with a record of it, so that the gateway starts again')
    .action(async (path: string) => {
      const { auditRepair } = await import('./repair.ts')
      await exitWith(auditRepair({ path }, terminal))
    })
}
