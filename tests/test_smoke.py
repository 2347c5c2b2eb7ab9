async def test_a_job_runs_and_its_result_is_kept(app, states, eventually):
    @app.job
    async def double(n: int) -> int:
        return 2 * n

    async with app.running():
        handle = await double.enqueue(21)
        await eventually(states, is_={"completed": 1})
    assert (await handle.status()).output == 42
    await app.close()
