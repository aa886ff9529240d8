import { type Command, Option } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat policy` is written. */
export function addPolicy(plat: Command): void {
  const policy = plat.command('policy').summary('try policies').description('Tries policies without effect.')
  addTest(policy)
  addExplain(policy)
  policy
    .command('simulate')
    .summary('evaluate recorded calls with other policies')
    .description(
      'Evaluates the calls in the ledger with other policies, and prints which decisions would change. The running gateway ' +
        'does it, without any effect on it.\n' +
        exitCodesLine(findings['policy simulate']),
    )
    .requiredOption(
      '-f, --file <path>',
      'the policies to try: a directory with resources/, or a rendered policies.json',
    )
    .option('--since <time>', 'calls of the last such time (24h), or since a time (RFC 3339)', '24h')
    .option('--agent <name>', 'only calls of this agent: a name of namespace default, or <namespace>/<agent>')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { policySimulate } = await import('./simulate.ts')
      await exitWith(policySimulate(options, terminal))
    })
}

function addTest(policy: Command): void {
  policy
    .command('test')
    .argument('[agent]', 'an agent of namespace default, or <namespace>/<agent>')
    .argument('[call]', '<server>/<tool>, llm/<route>/<model>, or a2a/<namespace>/<agent>/<skill>')
    .argument('[arguments]', 'arguments of the call as JSON; without them the verdict names what is possible')
    .summary('show what the policies of a directory decide about a call')
    .description(
      'Decides about a call by the resources of a directory, with the code of the gateway, and names the rule with its file and line. Nothing runs, ' +
        'and nothing is called. Rates and budgets count what -used and -spent say. With -file it runs tests: a YAML file with a list tests.\n' +
        exitCodesLine(findings['policy test']),
    )
    .option('-f, --file <tests.yaml>', 'run the tests of a file')
    .option('--user <name>', 'the user of the session')
    .option('--group <name...>', 'groups of the user')
    .option('--taint <label...>', 'labels of the session')
    .option('--time <time>', 'the time of the call (RFC 3339); default now')
    .option('--used <rule=calls...>', 'calls that the rate limit of a rule has counted in its window')
    .option('--spent <budget=amount...>', 'money or tokens that are spent of a budget, by its ID')
    .option('--tokens <input,output>', 'tokens of a call of a model, for budgets')
    .addOption(new Option('--expect <verdict>', 'the expected verdict').choices(['allow', 'deny', 'require_approval']))
    .option('--dir <dir>', 'the directory with resources/', '.')
    .addOption(format())
    .action(async (agent, call, args, { file, group, taint, used, spent, tokens, ...options }) => {
      if (file !== undefined) {
        const { policyTestFile } = await import('./test-file.ts')
        await exitWith(policyTestFile({ ...options, file }, terminal))
        return
      }
      const [{ policyTest, requireCall }, { countersOf }] = await Promise.all([
        import('./test.ts'),
        import('./counters.ts'),
      ])
      const counters = () => countersOf({ used, spent, tokens })
      const run = async () =>
        policyTest(
          { ...options, ...requireCall(agent, call), args, groups: group, taints: taint, ...counters() },
          terminal,
        )
      await exitWith(run())
    })
}

function addExplain(policy: Command): void {
  policy
    .command('explain')
    .argument('<decisionId>', 'the decisionId of a refusal, or the ID of a call')
    .summary('compare a recorded decision with what the policies of the folder decide now')
    .description(
      'Prints how a call was decided, and what the policies of the folder decide about it now, with the file and line of the rule. ' +
        'The folder is -f, or the directory of the plat up that the command talks to.\n' +
        exitCodesLine(findings['policy explain']),
    )
    .option('-f, --file <dir>', 'the folder of the policies: a directory with resources/')
    .addOption(dir())
    .addOption(format())
    .action(async (id: string, options) => {
      const { policyExplain } = await import('./explain.ts')
      await exitWith(policyExplain({ ...options, id }, terminal))
    })
}
