/**
 * Limits the tokens of each user with one policy, and gives one of them more.
 *
 * Prints:
 *   ada: refused (budget_exceeded)
 *   bob: Hello! I am a scripted model: I answer without an account, and each word is a token.
 */
import { start } from './plat.ts'

await using plat = await start({
  resources: {
    'BudgetPolicy/everyone': `
each:
  - per: user
    tokensPerDay: 50
    except: [{ names: [bob], tokensPerDay: 5000 }]`,
  },
})
for (const user of ['ada', 'bob']) {
  const session = await plat.session('assistant', undefined, user)
  await plat.prompt(session, 'hello', user)
  session.close()
}
