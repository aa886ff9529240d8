import { type Command, Option } from 'commander'
import { EXIT, exitCodeRows, exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'
import { exportFormats } from './export/encoders.ts'
import { recordFormats } from './layout.ts'

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
    .argument('[path]', LEDGER)
    .summary('prove that no record was changed, removed or added')
    .description(
      'Reads the whole ledger on all cores and checks every hash. Of a folder of tenants it verifies each ledger.\n' +
        `${exitCodesLine(findings['audit verify'])} ${FURTHER_CODES}\n` +
        'Uses <path>.head, <path>.checkpoints and the keys in <path>.jwks unless -checkpoint and -key are given. The ledger of a gateway ' +
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
  addPull(audit)
  addTail(audit)
  addGrep(audit)
  addExport(audit)
  addShow(audit)
  addProof(audit)
  addArguments(audit)
  addHolds(audit)
  audit
    .command('repair')
    .argument('<path>', 'the ledger file; the gateway must not be running')
    .summary('move damage aside and record it, so that the gateway can start; or restore a sealed segment')
    .option(
      '--from <file>',
      'a copy of a sealed segment, from a backup or the archive: replaces the damaged one if it is what was sealed',
    )
    .action(async (path: string, { from }: { readonly from?: string }) => {
      const { auditRepair, auditRestore } = await import('./repair.ts')
      await exitWith(from === undefined ? auditRepair({ path }, terminal) : auditRestore({ path, from }, terminal))
    })
}

const LEDGER = 'the ledger file (default: that of the running plat or of the gateway)'

const recordFormat = () =>
  new Option(
    '-o, --output <format>',
    'how to print: in the width of the terminal (table), whole (wide), or for programs',
  )
    .choices([...recordFormats])
    .default('table')

/** Flags that `tail` and `grep` share. */
function addFilters(command: Command): Command {
  return command
    .option('--session <name>', 'only records of this session: its name, or <ns>/<agent>/<name>')
    .option('--agent <name>', 'only records of this agent: assistant, or default/assistant')
    .option('--denied', 'only refusals')
    .option('--calls', 'one line for each call: how it ended')
}

function addPull(audit: Command): void {
  audit
    .command('pull')
    .argument('<folder>', 'the folder to create')
    .summary('copy the ledgers of all replicas into a folder, to verify them elsewhere')
    .description(
      'Copies the ledgers of all replicas of the gateway, one folder each. plat audit verify <folder> -key <file> verifies them with only the public key.',
    )
    .addOption(dir())
    .action(async (folder: string, options: { readonly dir?: string }) => {
      const { auditPull } = await import('./pull.ts')
      await exitWith(auditPull({ ...options, folder }, terminal))
    })
}

function addTail(audit: Command): void {
  const tail = audit
    .command('tail')
    .argument('[path]', LEDGER)
    .summary('show the latest records, one line each')
    .description(
      'Shows the latest records, one line each, in the width of the terminal (80 columns elsewhere), and whole with -o wide. Colors are for terminals; NO_COLOR turns them off.',
    )
    .addOption(dir())
    .option('-f, --follow', 'print new records as they are written')
    .option('-n, --lines <count>', 'number of records to start with', '20')
  addFilters(tail)
    .addOption(recordFormat())
    .action(async (path: string | undefined, options) => {
      const [{ auditTail }, { findLedger }] = await Promise.all([
        import('./tail.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditTail({ ...options, ...(await findLedger(path, options.dir)) }, terminal))
    })
}

function addGrep(audit: Command): void {
  const grep = audit
    .command('grep')
    .argument('[path]', LEDGER)
    .summary('find records by agent, call, time or text')
    .description('Prints the records that all given flags select. -o json prints lines of the ledger as they are.')
    .addOption(dir())
  addFilters(grep)
    .option('--user <name>', 'only records of this user')
    .option('--server <name>', 'only records of this server')
    .option('--tool <name>', 'only records of this tool')
    .option('--decision <id>', 'only records of the call with this ID, which refusals have as decisionId')
    .option('--text <text>', 'only records whose JSON has this text, with the same case')
    .option('--since <moment>', 'a time (RFC 3339), a time before now such as 24h, or the number of the first record')
    .option('--until <moment>', 'the same for the last record')
    .option('--newest', 'begin with the last record')
    .option('--limit <count>', 'number of records to print at most')
    .addOption(recordFormat())
    .action(async (path: string | undefined, options) => {
      const [{ auditGrep }, { findLedger }] = await Promise.all([
        import('./grep.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditGrep({ ...options, ...(await findLedger(path, options.dir)) }, terminal))
    })
}

function addExport(audit: Command): void {
  audit
    .command('export')
    .argument('[path]', LEDGER)
    .summary('write records as JSON lines, CSV or Parquet')
    .description(
      'Writes records to stdout, or with -o to a file, which gets its name when all of it is written. JSON lines are those of the ledger and verify; docs/ledger.md lists the columns of the other formats. Texts that a spreadsheet program would compute begin with an apostrophe in CSV.',
    )
    .addOption(dir())
    .option('--from <moment>', 'a time (RFC 3339), a time before now such as 24h, or the number of the first record')
    .option('--to <moment>', 'the same for the last record')
    .addOption(
      new Option('--format <format>', 'format (default: by the extension of the file, else jsonl)').choices([
        ...exportFormats,
      ]),
    )
    .option('-o, --output <file>', 'the file to write')
    .action(async (path: string | undefined, options) => {
      const [{ auditExport }, { findLedger }] = await Promise.all([
        import('./export/export.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditExport({ ...options, ...(await findLedger(path, options.dir)) }, terminal))
    })
}

function addShow(audit: Command): void {
  audit
    .command('show')
    .argument('<decisionId>', 'the decisionId of a refusal, or the ID of a call')
    .argument('[path]', LEDGER)
    .summary('show a decision: its policy and rule, its records, and their proof')
    .description(
      'Shows a decision with policy and rule, approval and cost, and whether a signed checkpoint proves its last record. With -f it says in which file and line of a folder the rule is. With -o json it prints the records and the receipt, which plat audit verify-proof checks without the ledger.\n' +
        exitCodesLine(findings['audit show']),
    )
    .addOption(dir())
    .option('-f, --file <dir>', 'the folder with the resources')
    .option('--key <file>', KEY)
    .addOption(format())
    .action(async (id: string, path: string | undefined, options) => {
      const [{ auditShow }, { findLedger }] = await Promise.all([
        import('./show.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(auditShow({ ...options, id, ...(await findLedger(path, options.dir)) }, terminal))
    })
}

function addHolds(audit: Command): void {
  const load = () => import('./hold.ts')
  const ledger = () => new Option('--ledger <path>', 'the ledger file of a gateway that is stopped')
  audit
    .command('hold')
    .argument('<target>', 'session:<ns>/<agent>/<id>, agent:<ns>/<name>, or <from>..<to> (two records or times)')
    .summary('make a legal hold: segments with such records stay')
    .addOption(dir())
    .addOption(ledger())
    .option('--reason <text>', 'stored with the hold and in the ledger')
    .addOption(format())
    .action(async (target: string, options) => exitWith((await load()).auditHold({ ...options, target }, terminal)))
  audit
    .command('holds')
    .summary('list legal holds')
    .addOption(dir())
    .addOption(ledger())
    .addOption(wideFormat())
    .action(async (options) => exitWith((await load()).auditHolds(options, terminal)))
  audit
    .command('release')
    .argument('<id>', 'as holds shows it')
    .summary('release a legal hold')
    .addOption(dir())
    .addOption(ledger())
    .action(async (id: string, options) => exitWith((await load()).auditRelease({ ...options, id }, terminal)))
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
    .argument('[path]', LEDGER)
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
