import type { Command } from 'commander'
import { exitWith, wideFormat } from '../shared/options.ts'
import { terminal, type WideFormat } from '../shared/output.ts'

/** How `plat pricing` is written. */
export function addPricing(plat: Command): void {
  const pricing = plat.command('pricing').description('prices of models')
  const load = () => import('./pricing.ts')
  pricing
    .command('list')
    .summary('list the prices of this package, with date and source')
    .addOption(wideFormat())
    .action(async ({ output }: { output: WideFormat }) => exitWith((await load()).pricingList(output, terminal)))
  pricing
    .command('update')
    .argument('[dir]', 'holds prices.json', '.')
    .summary('add or replace prices of models in prices.json')
    .description(
      'Writes the prices of this package, or those of -from, into <dir>/prices.json, and prints each change. Prices of other models and of tools stay.',
    )
    .option('--from <file>', 'another prices.json, or the price list of LiteLLM (model_prices_and_context_window.json)')
    .option('--dry-run', 'print the changes only')
    .action(async (dir: string, options: { from?: string; dryRun?: boolean }) =>
      exitWith((await load()).pricingUpdate({ dir, ...options }, terminal)),
    )
}
