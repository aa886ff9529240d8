import type { Command } from 'commander'
import { exitCodeRows, exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat evidence` is written. */
export function addEvidence(plat: Command): void {
  const evidence = plat.command('evidence').description('ledger records with their proofs, for auditors')
  evidence
    .command('create')
    .summary('seal records with their proofs into one object')
    .description(
      'Creates one object with the records of a session, an agent, a namespace or a time span. It can be verified with the\n' +
        'public keys of the checkpoints, without the ledger and the gateway.',
    )
    .option('--session <name>', 'records of this session alone: its name, or <ns>/<agent>/<name>')
    .option('--agent <name>', 'records of this agent alone: its name, or <ns>/<name>')
    .option('--namespace <name>', 'records of this namespace alone')
    .option('--call <id>', 'records of this call alone')
    .option('--from <when>', "from a record's number or an RFC 3339 time on")
    .option('--to <when>', "up to a record's number or an RFC 3339 time")
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { evidenceCreate } = await import('./evidence.ts')
      await exitWith(evidenceCreate(options, terminal))
    })
  evidence
    .command('list')
    .summary('list objects, newest first')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options) => {
      const { evidenceList } = await import('./evidence.ts')
      await exitWith(evidenceList(options, terminal))
    })
  evidence
    .command('get')
    .argument('<id>', 'as create and list show it')
    .argument('[file]', 'where to put it (default: <id>.evidence here)')
    .summary('fetch an object')
    .addOption(dir())
    .action(async (id: string, file: string | undefined, options) => {
      const { evidenceGet } = await import('./evidence.ts')
      await exitWith(evidenceGet({ ...options, id, file: file ?? `${id}.evidence` }, terminal))
    })
  evidence
    .command('verify')
    .argument('<file>', 'an evidence object')
    .summary('verify an object, without ledger and gateway')
    .description(`${exitCodesLine(findings['evidence verify'])} 4 ${exitCodeRows['4']}.`)
    .requiredOption('--key <file>', 'public keys (PEM, JWK or JWK set) of the checkpoints')
    .option('--log-key <file>', 'public keys of the transparency log that checkpoints are anchored in')
    .addOption(format())
    .action(async (file: string, options) => {
      const { evidenceVerify } = await import('./verify.ts')
      await exitWith(evidenceVerify({ ...options, file }, terminal))
    })
}
