import pytest

from smd_agent.core import reductions


@pytest.fixture(params=["numpy", "kernel"])
def implementation(request):
    """Each way of computing reductions in turn; the kernel only where the package was installed with one."""
    before = reductions.has_kernel()
    used = reductions.use_kernel(request.param == "kernel")
    if used != (request.param == "kernel"):
        pytest.skip("the package was installed without the compiled kernel")
    yield request.param
    reductions.use_kernel(before)
